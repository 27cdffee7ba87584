//! The locks by name: the only list of lock types in the crate.

use crate::{LockInfo, LockVisitor, Platform};

macro_rules! registry {
    // `$dollar` is a dollar sign, for the macro that this macro makes.
    (($dollar:tt) $($module:ident: $lock:ident, $info:ident, aliases $aliases:expr;)+) => {
        $(pub use crate::$module::$lock;)+

        static INFOS: &[LockInfo] = &[$(crate::$module::$info),+];
        /// The aliases of each of `INFOS`.
        static ALIASES: &[&[&str]] = &[$(&$aliases),+];

        /// Calls `visitor` with the lock type that `name`, or an alias, stands for; `None` if
        /// there is no such lock.
        pub fn with_lock<P: Platform, V: LockVisitor<P>>(
            name: &str,
            visitor: V,
        ) -> Option<V::Output> {
            $({
                const INFO: LockInfo = crate::$module::$info;
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
    lock_byte: LockByte, INFO, aliases ["byte"];
    aligned: LockByteAligned, LOCK_BYTE_INFO, aliases [];
    tas: Tas, INFO, aliases [];
    ttas: Ttas, INFO, aliases [];
    ticket: TicketSmall, SMALL_INFO, aliases [];
    ticket: Ticket, INFO, aliases [];
    aligned: TicketAligned, TICKET_INFO, aliases [];
    ticket_backoff: TicketBackoff, INFO, aliases [];
    xen_pv: XenPv, INFO, aliases [];
    futex: Futex, INFO, aliases [];
    s_lock: SLock, INFO, aliases ["s_lock"];
    pv_ticket: PvTicket2012Small, SMALL_INFO_2012, aliases [];
    pv_ticket: PvTicket2012, INFO_2012, aliases [];
    preemptable: PreemptableTicket, INFO, aliases ["pmtlock"];
    pv_ticket: PvTicket, INFO, aliases [];
    qspinlock: Qspinlock, INFO, aliases [];
    qspinlock: QspinlockTas, TAS_INFO, aliases [];
    rqspinlock: Rqspinlock, INFO, aliases [];
    pv_qspinlock: PvQspinlock42, INFO_4_2, aliases [];
    qspinlock_unfair: QspinlockUnfair, INFO, aliases [];
    pv_qspinlock: PvQspinlock45, INFO_4_5, aliases [];
    pv_qspinlock: PvQspinlock, INFO, aliases ["pv-qspinlock-4.15"];
    ispinlock: ISpinlock, INFO, aliases [];
    mcs: Mcs, INFO, aliases [];
    clh: Clh, INFO, aliases [];
    mcs_tp: McsTp, INFO, aliases [];
    malthusian: Malthusian, INFO, aliases ["mcscr"];
    cna: Cna, INFO, aliases [];
    twa: Twa, INFO, aliases [];
    shfllock: ShflLock, INFO, aliases ["shuffle"];
    hemlock: Hemlock, INFO, aliases [];
    flexguard: FlexGuard, INFO, aliases [];
    hapax: Hapax, INFO, aliases [];
    mutexee: Mutexee, INFO, aliases [];
    mutex: Mutex, INFO, aliases [];
    swift_mutex: SwiftMutex, INFO, aliases ["spinner-cap"];
}
