//! The threads that share a kernel's work.
//!
//! A kernel cuts its work into numbered tasks. Any thread may take any task: that does not change the result. The pool is made for many
//! short kernels in a row: between two kernels its threads spin, and only a longer pause lets them sleep. (A work-stealing pool costs
//! more, for generality that kernels do not use, and its threads sleep too early.)

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;

/// A pool of threads, the caller's own included. Clones share the pool.
#[derive(Clone)]
pub struct Threads {
    pool: Option<Arc<Pool>>,
}

impl Threads {
    /// A pool of `count` threads, of which the calling thread is one; at least one.
    ///
    /// If the system refuses a thread, the pool has fewer; see [`Threads::count`]. The results have the same bits.
    pub fn new(count: usize) -> Threads {
        Threads { pool: (count > 1).then(|| Arc::new(Pool::start(count - 1))) }
    }

    /// As many threads as the processor runs at once.
    pub fn all() -> Threads {
        Threads::new(std::thread::available_parallelism().map_or(1, |n| n.get()))
    }

    /// How many threads work on a kernel.
    pub fn count(&self) -> usize {
        self.pool.as_ref().map_or(1, |pool| pool.workers.len() + 1)
    }

    /// Calls `task(0)`, `task(1)`, … `task(tasks - 1)`, each once, on any of the threads; returns when all are done.
    ///
    /// A panic in a task is passed on to the caller after the others have stopped. A call from inside a task, or
    /// while another thread is using the pool, is carried out on the calling thread alone: the result is the same.
    pub fn run(&self, tasks: usize, task: impl Fn(usize) + Sync) {
        match &self.pool {
            Some(pool) if tasks > 1 => pool.run(tasks, &task),
            _ => (0..tasks).for_each(task),
        }
    }

    /// What `make` makes of each item, in the order of the items.
    pub fn map<T: Sync, R: Send>(&self, items: &[T], make: impl Fn(&T) -> R + Sync) -> Vec<R> {
        let mut made: Vec<Option<R>> = items.iter().map(|_| None).collect();
        self.for_pieces(&mut made, 1, |index, place| place[0] = Some(make(&items[index])));
        made.into_iter().map(|one| one.expect("each task runs once")).collect()
    }

    /// Cuts `data` into pieces of `size` (the last may be shorter) and calls `task(index, piece)` for each.
    pub fn for_pieces<T: Send>(&self, data: &mut [T], size: usize, task: impl Fn(usize, &mut [T]) + Sync) {
        let shared = Shared::new(data);
        self.run(shared.len.div_ceil(size), |index| {
            let start = index * size;
            // Safety: pieces of different tasks do not overlap, and each task runs once.
            let piece = unsafe { shared.slice(start, size.min(shared.len - start)) };
            task(index, piece);
        });
    }
}

impl std::fmt::Debug for Threads {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Threads({})", self.count())
    }
}

/// A slice that several tasks write to, each to places of its own.
#[derive(Clone, Copy)]
pub(crate) struct Shared<'a, T> {
    start: *mut T,
    len: usize,
    life: std::marker::PhantomData<&'a mut [T]>,
}

// Safety: access goes through `slice` and `at`, whose callers promise that no two tasks touch the same place.
unsafe impl<T: Send> Send for Shared<'_, T> {}
// Safety: as above.
unsafe impl<T: Send> Sync for Shared<'_, T> {}

impl<'a, T> Shared<'a, T> {
    pub(crate) fn new(data: &'a mut [T]) -> Self {
        Shared { start: data.as_mut_ptr(), len: data.len(), life: std::marker::PhantomData }
    }

    /// How many elements there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The `len` elements from `start` on.
    ///
    /// # Safety
    /// While the result lives, no other task may have a reference to any of these elements.
    #[allow(clippy::mut_from_ref, reason = "that is what the type is for")]
    #[inline(always)]
    pub(crate) unsafe fn slice(&self, start: usize, len: usize) -> &'a mut [T] {
        assert!(
            len <= self.len && start <= self.len - len,
            "{start} + {len} is past the end of {} elements",
            self.len
        );
        // Safety: in bounds as just checked, alone by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(start), len) }
    }

    /// A pointer to the element at `index`, to be written through by one task alone.
    #[inline(always)]
    pub(crate) fn at(&self, index: usize) -> *mut T {
        assert!(index <= self.len, "{index} is past the end of {} elements", self.len);
        // Safety: inside the slice, or one past its end, as just checked.
        unsafe { self.start.add(index) }
    }
}

/// A job as the workers see it: `call(task, index)` for every index they can get.
struct Job {
    task: *const (),
    call: unsafe fn(*const (), usize),
    tasks: usize,
    next: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

impl Job {
    /// Takes tasks until none is left.
    fn work(&self) {
        loop {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.tasks {
                return;
            }
            // Safety: `call` was made for the type behind `task`, which outlives the job (see `Pool::run`).
            let done = catch_unwind(AssertUnwindSafe(|| unsafe { (self.call)(self.task, index) }));
            if let Err(panic) = done {
                self.next.store(self.tasks, Ordering::Relaxed);
                let mut first = self.panic.lock().unwrap_or_else(|e| e.into_inner());
                match *first {
                    None => *first = Some(panic),
                    // Dropping it might panic, which nothing here would catch.
                    Some(_) => std::mem::forget(panic),
                }
            }
        }
    }
}

struct Pool {
    state: Arc<State>,
    /// Held by the thread whose job is in work.
    submit: Mutex<()>,
    workers: Vec<JoinHandle<()>>,
}

/// What the caller and the workers share.
///
/// `gate` is the number of the job, shifted up, with [`OPEN`] and the number of workers inside below it. A worker
/// enters by counting itself in while the gate is open. The caller closes the gate when no task is left, and then waits
/// only for the workers inside. A worker that wakes up too late finds the gate closed and does nothing.
struct State {
    gate: AtomicU64,
    job: AtomicPtr<Job>,
    stop: AtomicBool,
    sleepers: Mutex<usize>,
    wake: Condvar,
}

const OPEN: u64 = 1 << 31;
const INSIDE: u64 = OPEN - 1;
/// Rounds of the waiting loop before a worker sleeps: some tenths of a millisecond. That is longer than any pause inside a training step,
/// and too short to be noticed.
const SPINS: u32 = 20_000;

impl Pool {
    fn start(workers: usize) -> Pool {
        let state = Arc::new(State {
            gate: AtomicU64::new(0),
            job: AtomicPtr::new(std::ptr::null_mut()),
            stop: AtomicBool::new(false),
            sleepers: Mutex::new(0),
            wake: Condvar::new(),
        });
        let spawn = |index| {
            let state = Arc::clone(&state);
            let builder = std::thread::Builder::new().name(format!("attentive-{index}"));
            builder.spawn(move || state.serve()).ok()
        };
        let workers = (0..workers).map_while(spawn).collect();
        Pool { state, submit: Mutex::new(()), workers }
    }

    fn run<F: Fn(usize) + Sync>(&self, tasks: usize, task: &F) {
        let Ok(mine) = self.submit.try_lock() else {
            return (0..tasks).for_each(task);
        };
        /// # Safety
        /// `task` must point to an `F`.
        unsafe fn call<F: Fn(usize)>(task: *const (), index: usize) {
            // Safety: the caller's promise.
            unsafe { (*task.cast::<F>())(index) }
        }
        let job = Job {
            task: std::ptr::from_ref(task).cast(),
            call: call::<F>,
            tasks,
            next: AtomicUsize::new(0),
            panic: Mutex::new(None),
        };
        // `job` and `task` stay where they are until the gate is closed and the last worker is out.
        let open = self.state.open(&job);
        job.work();
        drop(open);
        if let Some(panic) = job.panic.into_inner().unwrap_or_else(|e| e.into_inner()) {
            drop(mine);
            resume_unwind(panic);
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        drop(self.state.sleepers.lock());
        self.state.wake.notify_all();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

impl State {
    /// Lets workers in to `job`, which must stay where it is until the result is dropped.
    fn open(&self, job: &Job) -> OpenGate<'_> {
        self.job.store(std::ptr::from_ref(job).cast_mut(), Ordering::Relaxed);
        let number = (self.gate.load(Ordering::Relaxed) >> 32) + 1;
        self.gate.store(number << 32 | OPEN, Ordering::SeqCst);
        if *self.sleepers.lock().unwrap_or_else(|e| e.into_inner()) > 0 {
            self.wake.notify_all();
        }
        OpenGate(self)
    }

    /// A worker's life.
    fn serve(&self) {
        let mut seen = 0;
        let mut turns = 0;
        while !self.stop.load(Ordering::Relaxed) {
            let gate = self.gate.load(Ordering::Acquire);
            if gate & OPEN == 0 || gate >> 32 == seen {
                turns += 1;
                if turns > SPINS {
                    self.sleep(seen);
                    turns = 0;
                } else {
                    std::hint::spin_loop();
                }
                continue;
            }
            if self.gate.compare_exchange(gate, gate + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
                // Safety: we were counted in while the gate was open, so the caller keeps the job until we leave.
                unsafe { (*self.job.load(Ordering::Relaxed)).work() };
                self.gate.fetch_sub(1, Ordering::AcqRel);
                seen = gate >> 32;
                turns = 0;
            }
        }
    }

    /// Sleeps until there is another job than `seen`, or the pool stops.
    fn sleep(&self, seen: u64) {
        let mut sleepers = self.sleepers.lock().unwrap_or_else(|e| e.into_inner());
        *sleepers += 1;
        // Checked under the lock that `open` takes after it changed the gate, so that no wake-up is missed.
        while !self.stop.load(Ordering::SeqCst) {
            let gate = self.gate.load(Ordering::SeqCst);
            if gate & OPEN != 0 && gate >> 32 != seen {
                break;
            }
            sleepers = self.wake.wait(sleepers).unwrap_or_else(|e| e.into_inner());
        }
        *sleepers -= 1;
    }
}

/// Closes the gate when it is dropped, also by a panic, and waits until the last worker is out.
struct OpenGate<'a>(&'a State);

impl Drop for OpenGate<'_> {
    fn drop(&mut self) {
        let gate = &self.0.gate;
        gate.fetch_and(!OPEN, Ordering::AcqRel);
        let mut turns = 0;
        while gate.load(Ordering::Acquire) & INSIDE != 0 {
            turns += 1;
            // With more threads than cores, the one we wait for may need ours.
            if turns % 256 == 0 { std::thread::yield_now() } else { std::hint::spin_loop() }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Barrier;

    #[test]
    fn every_task_runs_once_at_any_thread_count() {
        for count in [1, 2, 3, 7] {
            let threads = Threads::new(count);
            assert_eq!(threads.count(), count);
            for tasks in [0, 1, 2, 5, 1000] {
                let mut seen = vec![0u32; tasks * 3];
                threads.for_pieces(&mut seen, 3, |index, piece| piece.fill(index as u32 + 1));
                let expected: Vec<u32> = (0..tasks as u32 * 3).map(|i| i / 3 + 1).collect();
                assert_eq!(seen, expected);
            }
        }
    }

    #[test]
    fn what_is_made_of_items_keeps_their_order() {
        for count in [1, 2, 3, 7] {
            for items in [0, 1, 2, 1000] {
                let items: Vec<usize> = (0..items).collect();
                let made = Threads::new(count).map(&items, |item| item.to_string());
                assert_eq!(made, items.iter().map(usize::to_string).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_call_from_inside_a_task_is_carried_out() {
        let threads = Threads::new(3);
        let sum = AtomicUsize::new(0);
        threads.run(4, |_| {
            threads.run(5, |i| {
                sum.fetch_add(i, Ordering::Relaxed);
            })
        });
        assert_eq!(sum.into_inner(), 40);
    }

    #[test]
    fn a_panic_reaches_the_caller_and_leaves_the_pool_usable() {
        let threads = Threads::new(3);
        let result = catch_unwind(AssertUnwindSafe(|| threads.run(100, |i| assert!(i != 50, "task fifty"))));
        assert!(result.is_err());
        let count = AtomicUsize::new(0);
        threads.run(10, |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(count.into_inner(), 10);
    }

    #[test]
    fn the_first_of_two_panics_reaches_the_caller_and_the_other_is_never_dropped() {
        struct Charged;
        impl Drop for Charged {
            fn drop(&mut self) {
                panic!("a payload was dropped");
            }
        }
        let (threads, meeting) = (Threads::new(2), Barrier::new(2));
        let both = || {
            threads.run(2, |_| {
                meeting.wait();
                std::panic::panic_any(Charged);
            })
        };
        let payload = catch_unwind(AssertUnwindSafe(both)).unwrap_err();
        assert!(payload.is::<Charged>());
        std::mem::forget(payload);
        // The worker is alive: without it, nobody would come to the meeting.
        threads.run(2, |_| {
            meeting.wait();
        });
    }

    #[test]
    fn sleeping_threads_wake_up_for_the_next_job() {
        let (threads, meeting) = (Threads::new(2), Barrier::new(2));
        for _ in 0..3 {
            std::thread::sleep(std::time::Duration::from_millis(30));
            // Neither task can end before the other has begun, so it takes two threads.
            threads.run(2, |_| {
                meeting.wait();
            });
        }
    }
}
