// SPDX-License-Identifier: GPL-2.0
/*
 * Threads that take spinlocks again and again: the workload lock-loop of Overspin, inside a kernel. A boot serves one job.
 * Whoever has it done writes to /proc/overspin_work
 *
 *   job THREADS CPUS LOCKS SECTION OUTSIDE FIXED IDLE IDLE_EVERY IRQS_OFF COUNT STAGGER WARMUP LIMIT SEED NOTES
 *   go
 *   stop            before the limit, if at all
 *
 * with times in nanoseconds and CPUS as a hexadecimal mask, and reads: that waits until all threads have ended, and tells what
 * they did. Times are told in ticks of the time stamp counter. NOTES acquisitions, from the begin, are told one by one:
 * /proc/overspin_notes has them afterwards as an array of struct note, with zeros for places that stayed empty.
 *
 * Work is a loop that counts steps, not time: a holder whose CPU is taken away has the rest of its section still to do.
 */
#include <linux/cpumask.h>
#include <linux/fs.h>
#include <linux/hrtimer.h>
#include <linux/init.h>
#include <linux/kthread.h>
#include <linux/log2.h>
#include <linux/math64.h>
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/sched/task.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <asm/msr.h>
#include <asm/tsc.h>

#define MOST_LOCKS 64
/* Of crates/histogram: 128 buckets of a power of two, up to 2^41. */
#define SUB_BITS 7
#define BUCKETS 4480
/* Parts of the limit for which items are counted. */
#define SLOTS 64
/* Steps between two looks whether it is over, some hundred microseconds. */
#define PIECE (1 << 16)

/* What a thread saw at a lock, in ticks. */
struct seen {
	u64 acquisitions, contended, wait_total, wait_max, hold_total, hold_max;
	u32 waits[BUCKETS];
} ____cacheline_aligned;

/* An acquisition, in ticks of the counter; got is 0 in a place that is empty. crates/linux/src/world/moments.rs reads it. */
struct note {
	u64 asked, got, released, freed;
	u32 lock;
	u16 cpu, waited;
};

/* A worker takes places for notes in pieces of so many. */
#define NOTES_PIECE 1024

struct worker {
	struct task_struct *task;
	struct note *note;		/* the next place, if left */
	unsigned int left;
	u64 random, items, ended;
	struct seen *seen;
	u32 slots[SLOTS];
} ____cacheline_aligned;

static struct {
	u64 section, outside;		/* steps */
	u64 idle, stagger;		/* nanoseconds */
	u64 idle_every, count;
	u64 warmup, limit;		/* ticks since it began */
	unsigned int threads, locks, fixed, irqs_off;
	struct cpumask cpus;
	u64 rate;			/* steps in 2^20 ticks */
	u64 begun, stopped;		/* 0: not yet */
	struct worker *workers;
	unsigned int notes;		/* a multiple of NOTES_PIECE */
	atomic_t noted;			/* places that were taken, or asked for */
	struct note *all_notes;
} job;

static struct {
	spinlock_t lock;
} ____cacheline_aligned locks[MOST_LOCKS];

static DEFINE_MUTEX(writers);
static DECLARE_WAIT_QUEUE_HEAD(may_begin);
static DECLARE_WAIT_QUEUE_HEAD(all_ended);
static atomic_t running;

/* Random numbers as in crates/workload/src/random.rs: log2_of[i] is log2(1 + i/256) in units of 2^-32. */
static u64 log2_of[257];
#define LN2 2977044472ULL

static void make_log2(void)
{
	int i, k;

	for (i = 0; i < 256; i++) {
		u64 x = (256ULL + i) << 54, bits = 0;

		for (k = 0; k < 32; k++) {
			x = mul_u64_u64_shr(x, x, 62);
			bits <<= 1;
			if (x >> 63) {
				bits |= 1;
				x >>= 1;
			}
		}
		log2_of[i] = bits;
	}
	log2_of[256] = 1ULL << 32;
}

static u64 random_bits(struct worker *w)
{
	u64 z = w->random += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static u64 below(struct worker *w, u64 limit)
{
	return mul_u64_u64_shr(random_bits(w), limit, 64);
}

static u64 exponential(struct worker *w, u64 mean)
{
	u64 u = random_bits(w) | 1;
	int zeros = 63 - ilog2(u);
	u64 mantissa = (u << zeros) << 1;
	int index = mantissa >> 56;
	u64 rest = (mantissa >> 24) & 0xffffffff, low = log2_of[index];
	u64 log = low + (((log2_of[index + 1] - low) * rest) >> 32);
	u64 minus_log2 = ((u64)zeros << 32) + ((1ULL << 32) - log);

	return mul_u64_u64_shr(mul_u64_u64_shr(minus_log2, LN2, 32), mean, 32);
}

static noinline void work(u64 steps)
{
	u64 value = 1;

	while (steps--) {
		value = (value ^ (value >> 32)) * 0x9e3779b97f4a7c15ULL;
		/* Somebody may read it. */
		asm volatile("" : "+r" (value));
	}
}

/* The best of many short trials: the others were disturbed. */
static u64 measured_rate(void)
{
	u64 best = U64_MAX;
	int i;

	for (i = 0; i < 400; i++) {
		u64 began = rdtsc_ordered();

		work(1 << 13);
		best = min(best, rdtsc_ordered() - began);
	}
	return (1ULL << (13 + 20)) / max(best, 1ULL);
}

static u64 ticks(u64 ns)
{
	return mul_u64_u64_div_u64(ns, tsc_khz, 1000000);
}

static u64 steps(u64 ns)
{
	return mul_u64_u64_shr(ticks(ns), job.rate, 20);
}

static u64 since_begin(void)
{
	return rdtsc_ordered() - job.begun;
}

static bool is_over(void)
{
	return READ_ONCE(job.stopped) || since_begin() >= job.limit;
}

static void note_wait(struct seen *s, u64 wait)
{
	unsigned int shift = ilog2(wait | (1 << SUB_BITS)) - SUB_BITS;
	u64 bucket = ((u64)shift << SUB_BITS) + (wait >> shift);

	s->contended++;
	s->wait_total += wait;
	s->wait_max = max(s->wait_max, wait);
	s->waits[min_t(u64, bucket, BUCKETS - 1)]++;
}

/* A place for a note; none: all are taken. */
static struct note *next_note(struct worker *w)
{
	if (!w->left) {
		unsigned int at;

		/* More than there are: one was not noted. It grows no further. */
		if (atomic_read(&job.noted) > job.notes)
			return NULL;
		at = atomic_add_return(NOTES_PIECE, &job.noted) - NOTES_PIECE;
		if (at >= job.notes)
			return NULL;
		w->note = &job.all_notes[at];
		w->left = NOTES_PIECE;
	}
	w->left--;
	return w->note++;
}

static void section(struct worker *w, unsigned int which)
{
	spinlock_t *lock = &locks[which].lock;
	struct seen *s = &w->seen[which];
	u64 asked = 0, got, released, freed;
	unsigned long flags = 0;
	unsigned int cpu;
	struct note *note;

	if (job.irqs_off)
		local_irq_save(flags);
	/* As the kernel's own statistics of locks tell a wait: from the first attempt, which failed. */
	if (!spin_trylock(lock)) {
		asked = since_begin();
		spin_lock(lock);
	}
	got = since_begin();
	/* Whoever has a spinlock stays on its CPU. */
	cpu = smp_processor_id();
	if (got < job.limit)
		work(job.section);
	released = since_begin();
	spin_unlock(lock);
	freed = since_begin();
	if (job.irqs_off)
		local_irq_restore(flags);
	if (got >= job.limit)
		return;
	note = next_note(w);
	if (note)
		*note = (struct note){ job.begun + (asked ?: got), job.begun + got, job.begun + released,
				       job.begun + freed, which, cpu, !!asked };
	w->slots[min_t(u64, div64_u64(released * SLOTS, job.limit), SLOTS - 1)]++;
	if (got < job.warmup)
		return;
	w->items++;
	s->acquisitions++;
	s->hold_total += released - got;
	s->hold_max = max(s->hold_max, released - got);
	if (asked)
		note_wait(s, got - asked);
}

static void outside(struct worker *w)
{
	u64 left = job.fixed ? job.outside : exponential(w, job.outside);

	while (left && !is_over()) {
		u64 piece = min_t(u64, left, PIECE);

		work(piece);
		left -= piece;
		cond_resched();
	}
}

static void sleep(u64 ns)
{
	ktime_t time = ns_to_ktime(ns);

	set_current_state(TASK_IDLE);
	if (!is_over())
		schedule_hrtimeout(&time, HRTIMER_MODE_REL);
	__set_current_state(TASK_RUNNING);
}

static int life(void *data)
{
	struct worker *w = data;
	u64 done = 0;

	wait_event_idle(may_begin, smp_load_acquire(&job.begun));
	/* It begins on a CPU of its own, and goes where the kernel wants it. */
	set_cpus_allowed_ptr(current, &job.cpus);
	if (job.stagger)
		sleep(below(w, job.stagger));
	while (!is_over()) {
		section(w, job.locks > 1 ? below(w, job.locks) : 0);
		if (++done == job.count)
			break;
		outside(w);
		if (job.idle && below(w, job.idle_every) == 0)
			sleep(exponential(w, job.idle));
		cond_resched();
	}
	if (done == job.count && !is_over())
		w->ended = since_begin();
	if (atomic_dec_and_test(&running))
		wake_up_all(&all_ended);
	return 0;
}

static int start(const char *line)
{
	u64 cpus, section, outside, warmup, limit, seed;
	struct seen *seen;
	unsigned int i, cpu;
	int cpu_of_thread = -1;

	if (job.workers)
		return -EBUSY;
	if (sscanf(line, "job %u %llx %u %llu %llu %u %llu %llu %u %llu %llu %llu %llu %llu %u", &job.threads, &cpus, &job.locks,
		   &section, &outside, &job.fixed, &job.idle, &job.idle_every, &job.irqs_off, &job.count,
		   &job.stagger, &warmup, &limit, &seed, &job.notes) != 15)
		return -EINVAL;
	for_each_online_cpu(cpu) {
		if (cpu < 64 && cpus >> cpu & 1)
			cpumask_set_cpu(cpu, &job.cpus);
	}
	if (cpumask_empty(&job.cpus) || !job.threads || !job.locks || job.locks > MOST_LOCKS || !limit)
		return -EINVAL;
	make_log2();
	job.rate = measured_rate();
	job.section = steps(section);
	job.outside = steps(outside);
	job.warmup = ticks(warmup);
	job.limit = ticks(limit);
	for (i = 0; i < MOST_LOCKS; i++)
		spin_lock_init(&locks[i].lock);
	job.workers = vzalloc(array_size(job.threads, sizeof(struct worker)));
	seen = vzalloc(array3_size(job.threads, job.locks, sizeof(struct seen)));
	job.notes = round_up(job.notes, NOTES_PIECE);
	job.all_notes = job.notes ? vzalloc(array_size(job.notes, sizeof(struct note))) : NULL;
	if (!job.workers || !seen || (job.notes && !job.all_notes))
		return -ENOMEM;
	for (i = 0; i < job.threads; i++) {
		struct worker *w = &job.workers[i];

		cpu_of_thread = cpumask_next(cpu_of_thread, &job.cpus);
		if (cpu_of_thread >= nr_cpu_ids)
			cpu_of_thread = cpumask_first(&job.cpus);
		w->seen = &seen[i * job.locks];
		w->random = seed + i;
		w->random = random_bits(w);
		w->task = kthread_create(life, w, "loop%u", i);
		if (IS_ERR(w->task))
			return PTR_ERR(w->task);
		/* It may be gone when it is woken. */
		get_task_struct(w->task);
		set_cpus_allowed_ptr(w->task, cpumask_of(cpu_of_thread));
		atomic_inc(&running);
		wake_up_process(w->task);
	}
	return 0;
}

static int stop(void)
{
	unsigned int i;

	if (!job.begun)
		return -EINVAL;
	WRITE_ONCE(job.stopped, since_begin());
	for (i = 0; i < job.threads; i++)
		wake_up_process(job.workers[i].task);
	return 0;
}

static ssize_t overspin_write(struct file *file, const char __user *from, size_t length, loff_t *at)
{
	char line[256];
	int error = -EINVAL;

	if (length >= sizeof(line))
		return -EINVAL;
	if (copy_from_user(line, from, length))
		return -EFAULT;
	line[length] = 0;
	mutex_lock(&writers);
	if (!strncmp(line, "job ", 4)) {
		error = start(line);
	} else if (!strncmp(line, "go", 2) && job.workers && !job.begun) {
		smp_store_release(&job.begun, rdtsc_ordered());
		wake_up_all(&may_begin);
		error = 0;
	} else if (!strncmp(line, "stop", 4)) {
		error = stop();
	}
	mutex_unlock(&writers);
	return error ? error : length;
}

static void show_lock(struct seq_file *to, unsigned int lock)
{
	u64 acquisitions = 0, contended = 0, wait_total = 0, wait_max = 0, hold_total = 0, hold_max = 0;
	unsigned int i, bucket;

	for (i = 0; i < job.threads; i++) {
		struct seen *s = &job.workers[i].seen[lock];

		acquisitions += s->acquisitions;
		contended += s->contended;
		wait_total += s->wait_total;
		wait_max = max(wait_max, s->wait_max);
		hold_total += s->hold_total;
		hold_max = max(hold_max, s->hold_max);
	}
	seq_printf(to, "lock %llu %llu %llu %llu %llu %llu\nwaits", acquisitions, contended, wait_total,
		   wait_max, hold_total, hold_max);
	for (bucket = 0; bucket < BUCKETS; bucket++) {
		u64 count = 0;

		for (i = 0; i < job.threads; i++)
			count += job.workers[i].seen[lock].waits[bucket];
		if (count)
			seq_printf(to, " %u:%llu", bucket, count);
	}
	seq_puts(to, "\n");
}

static int overspin_show(struct seq_file *to, void *unused)
{
	u64 end = 0;
	unsigned int i, slot;

	if (!job.begun)
		return -EINVAL;
	if (wait_event_interruptible(all_ended, !atomic_read(&running)))
		return -ERESTARTSYS;
	for (i = 0; i < job.threads; i++)
		end = max(end, job.workers[i].ended ?: job.limit);
	if (job.stopped)
		end = min(end, job.stopped);
	seq_printf(to, "clock %u %llu %llu\n", tsc_khz, job.rate, end);
	/* Whether each acquisition has its note; the counter at the begin. */
	seq_printf(to, "notes %d %llu\n", job.notes && atomic_read(&job.noted) <= job.notes, job.begun);
	for (i = 0; i < job.threads; i++)
		seq_printf(to, "task %llu %llu\n", job.workers[i].items, job.workers[i].ended);
	for (i = 0; i < job.locks; i++)
		show_lock(to, i);
	seq_puts(to, "progress");
	for (slot = 0; slot < SLOTS; slot++) {
		u64 count = 0;

		for (i = 0; i < job.threads; i++)
			count += job.workers[i].slots[slot];
		seq_printf(to, " %llu", count);
	}
	seq_puts(to, "\n");
	return 0;
}

static int overspin_open(struct inode *inode, struct file *file)
{
	return single_open(file, overspin_show, NULL);
}

static const struct proc_ops overspin_ops = {
	.proc_open = overspin_open,
	.proc_read = seq_read,
	.proc_write = overspin_write,
	.proc_lseek = seq_lseek,
	.proc_release = single_release,
};

static ssize_t notes_read(struct file *file, char __user *to, size_t length, loff_t *at)
{
	size_t places = min_t(size_t, atomic_read(&job.noted), job.notes);

	if (!job.begun || atomic_read(&running))
		return -EBUSY;
	return simple_read_from_buffer(to, length, at, job.all_notes, places * sizeof(struct note));
}

static const struct proc_ops notes_ops = {
	.proc_read = notes_read,
	.proc_lseek = default_llseek,
};

static int __init overspin_work_init(void)
{
	if (!proc_create("overspin_work", 0600, NULL, &overspin_ops) || !proc_create("overspin_notes", 0400, NULL, &notes_ops))
		return -ENOMEM;
	return 0;
}
late_initcall(overspin_work_init);
