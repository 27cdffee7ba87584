//! The locks by name: the only list of lock types in the crate.

use crate::{LockInfo, LockVisitor, Platform};
use crate::{
    aligned, clh, cna, flexguard, futex, hemlock, ispinlock, lock_byte, malthusian, mcs, mcs_tp,
    mutex, mutexee, preemptable, pv_qspinlock, pv_ticket, qspinlock, qspinlock_unfair, shfllock,
    ticket, ticket_backoff, ttas, twa, xen_pv,
};

macro_rules! registry {
    // `$dollar` is a dollar sign, for the macro that this macro makes.
    (($dollar:tt) $($lock:ident: $info:expr, aliases $aliases:expr;)+) => {
        use crate::{$($lock),+};

        static INFOS: &[LockInfo] = &[$($info),+];
        /// The aliases of each of `INFOS`.
        static ALIASES: &[&[&str]] = &[$(&$aliases),+];

        /// Calls `visitor` with the lock type that `name`, or an alias, stands for; `None` if
        /// there is no such lock.
        pub fn with_lock<P: Platform, V: LockVisitor<P>>(
            name: &str,
            visitor: V,
        ) -> Option<V::Output> {
            $({
                const INFO: LockInfo = $info;
                const ALIASES: &[&str] = &$aliases;
                if name == INFO.name || ALIASES.contains(&name) {
                    return Some(visitor.visit::<$lock<P>>());
                }
            })+
            None
        }

        /// Calls the macro `callback` with the names of all lock types. It is for code that wants
        /// each of them in several worlds, or needs to know more of a type than
        /// [`LockVisitor`](crate::LockVisitor) tells.
        #[macro_export]
        macro_rules! for_each_lock {
            ($dollar callback:ident) => {
                $dollar callback! { $($lock)+ }
            };
        }
    };
}

/// Properties of all locks, in the order of their history.
pub fn infos() -> &'static [LockInfo] {
    INFOS
}

/// All locks with their aliases. Reports never use an alias.
pub fn infos_and_aliases() -> impl Iterator<Item = (&'static LockInfo, &'static [&'static str])> {
    INFOS.iter().zip(ALIASES.iter().copied())
}

/// Properties of the lock that `name`, or an alias, stands for.
pub fn find(name: &str) -> Option<&'static LockInfo> {
    let mut all = infos_and_aliases();
    all.find(|(info, aliases)| info.name == name || aliases.contains(&name)).map(|(info, _)| info)
}

registry! { ($)
    LockByte: lock_byte::INFO, aliases ["byte"];
    LockByteAligned: aligned::LOCK_BYTE_INFO, aliases [];
    Ttas: ttas::INFO, aliases [];
    TicketSmall: ticket::SMALL_INFO, aliases [];
    Ticket: ticket::INFO, aliases [];
    TicketAligned: aligned::TICKET_INFO, aliases [];
    TicketBackoff: ticket_backoff::INFO, aliases [];
    XenPv: xen_pv::INFO, aliases [];
    Futex: futex::INFO, aliases [];
    PvTicket2012Small: pv_ticket::SMALL_INFO_2012, aliases [];
    PvTicket2012: pv_ticket::INFO_2012, aliases [];
    PreemptableTicket: preemptable::INFO, aliases ["pmtlock"];
    PvTicket: pv_ticket::INFO, aliases [];
    Qspinlock: qspinlock::INFO, aliases [];
    QspinlockTas: qspinlock::TAS_INFO, aliases [];
    PvQspinlock42: pv_qspinlock::INFO_4_2, aliases [];
    QspinlockUnfair: qspinlock_unfair::INFO, aliases [];
    PvQspinlock45: pv_qspinlock::INFO_4_5, aliases [];
    PvQspinlock: pv_qspinlock::INFO, aliases ["pv-qspinlock-4.15"];
    ISpinlock: ispinlock::INFO, aliases [];
    Mcs: mcs::INFO, aliases [];
    Clh: clh::INFO, aliases [];
    McsTp: mcs_tp::INFO, aliases [];
    Malthusian: malthusian::INFO, aliases ["mcscr"];
    Cna: cna::INFO, aliases [];
    Twa: twa::INFO, aliases [];
    ShflLock: shfllock::INFO, aliases ["shuffle"];
    Hemlock: hemlock::INFO, aliases [];
    FlexGuard: flexguard::INFO, aliases [];
    Mutexee: mutexee::INFO, aliases [];
    Mutex: mutex::INFO, aliases [];
}
