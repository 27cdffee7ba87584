/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The operations of spinlocks, by a lock of Overspin if the boot parameter overspin_lock=NAME names one, else as ever.
 * asm/spinlock.h includes this after asm/qspinlock.h, whose names it takes over.
 */
#ifndef _ASM_X86_OVERSPIN_H
#define _ASM_X86_OVERSPIN_H

/* Written once at boot, before the second CPU starts and while no lock is held: the free word of both is 0 until then. */
extern bool overspin_chosen;

/* crates/linux/locks */
void overspin_lock(const u32 *word);
bool overspin_trylock(const u32 *word);
void overspin_unlock(const u32 *word);
bool overspin_is_locked(const u32 *word);
bool overspin_is_contended(const u32 *word);
bool overspin_choose(const u8 *name, unsigned long length, unsigned long cpus, u32 budget);

void overspin_boot(void);

#define OVERSPIN_WORD(lock) ((const u32 *)&(lock)->val.counter)

static __always_inline void overspin_arch_lock(struct qspinlock *lock)
{
	if (likely(overspin_chosen))
		overspin_lock(OVERSPIN_WORD(lock));
	else
		queued_spin_lock(lock);
}

static __always_inline int overspin_arch_trylock(struct qspinlock *lock)
{
	return likely(overspin_chosen) ? overspin_trylock(OVERSPIN_WORD(lock)) : queued_spin_trylock(lock);
}

static __always_inline void overspin_arch_unlock(struct qspinlock *lock)
{
	if (likely(overspin_chosen))
		overspin_unlock(OVERSPIN_WORD(lock));
	else
		queued_spin_unlock(lock);
}

static __always_inline int overspin_arch_is_locked(struct qspinlock *lock)
{
	return likely(overspin_chosen) ? overspin_is_locked(OVERSPIN_WORD(lock)) : queued_spin_is_locked(lock);
}

static __always_inline int overspin_arch_is_contended(struct qspinlock *lock)
{
	return likely(overspin_chosen) ? overspin_is_contended(OVERSPIN_WORD(lock)) : queued_spin_is_contended(lock);
}

static __always_inline int overspin_arch_value_unlocked(struct qspinlock lock)
{
	return !overspin_arch_is_locked(&lock);
}

#undef arch_spin_lock
#undef arch_spin_trylock
#undef arch_spin_unlock
#undef arch_spin_is_locked
#undef arch_spin_is_contended
#undef arch_spin_value_unlocked
#define arch_spin_lock(l) overspin_arch_lock(l)
#define arch_spin_trylock(l) overspin_arch_trylock(l)
#define arch_spin_unlock(l) overspin_arch_unlock(l)
#define arch_spin_is_locked(l) overspin_arch_is_locked(l)
#define arch_spin_is_contended(l) overspin_arch_is_contended(l)
#define arch_spin_value_unlocked(l) overspin_arch_value_unlocked(l)

#endif
