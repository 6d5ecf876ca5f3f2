//! Which output is used next, and which are not.

use super::*;
use crate::layout::SampleLayout;
use crate::preprocess::{Fingerprint, TensorDesc};

/// A tensor with a name, whose device is told what it has finished.
#[derive(Clone, Debug)]
struct Named {
    name: char,
    busy: Arc<AtomicBool>,
    guarded: Arc<AtomicBool>,
    /// Of a device that orders nothing.
    must_be_idle: bool,
    given_back: Arc<AtomicUsize>,
}

impl Named {
    fn is_busy(&self, busy: bool) {
        self.busy.store(busy, Ordering::Relaxed);
    }

    fn has_guard(&self, held: bool) {
        self.guarded.store(held, Ordering::Relaxed);
    }
}

impl crate::backend::sealed::Sealed for Named {}

impl Tensor for Named {
    fn wait(&self) -> Result<(), DeviceError> {
        Ok(())
    }

    fn is_written(&self) -> Result<bool, DeviceError> {
        Ok(true)
    }

    fn is_idle(&self) -> Result<bool, DeviceError> {
        Ok(!self.busy.load(Ordering::Relaxed))
    }

    fn must_be_idle(&self) -> bool {
        self.must_be_idle
    }

    fn given_back(&self) {
        self.given_back.fetch_add(1, Ordering::Relaxed);
    }

    fn is_held(&self) -> bool {
        self.guarded.load(Ordering::Relaxed)
    }

    fn read(&self, _: &TensorDesc) -> Result<Vec<u8>, DeviceError> {
        Ok(Vec::new())
    }

    fn fingerprints(&self, _: usize) -> Result<Option<Vec<Fingerprint>>, DeviceError> {
        Ok(None)
    }
}

fn layout() -> BatchLayout {
    BatchLayout::new(SampleLayout::bytes(&[1]).expect("a sample"), 1).expect("a batch")
}

/// Tensors, and the pool of them.
fn pool<const N: usize>(names: [char; N]) -> ([Named; N], OutputPool<Named>) {
    pool_of(names, false)
}

fn pool_of<const N: usize>(names: [char; N], must_be_idle: bool) -> ([Named; N], OutputPool<Named>) {
    let named =
        |name| Named { name, busy: Arc::default(), guarded: Arc::default(), must_be_idle, given_back: Arc::default() };
    let tensors = names.map(named);
    let outputs =
        tensors.iter().map(|tensor| Output::new(tensor.clone(), &layout(), 1).expect("a little memory")).collect();
    (tensors, OutputPool::new(outputs, None, Arc::default()))
}

fn taken(pool: &OutputPool<Named>) -> Option<char> {
    pool.take().map(|output| output.tensor.name)
}

#[test]
fn outputs_are_used_oldest_first() {
    let (_, pool) = pool(['a', 'b', 'c']);
    let (first, second) = (pool.take().expect("a"), pool.take().expect("b"));
    assert_eq!((first.tensor.name, second.tensor.name), ('a', 'b'));
    pool.put(first);
    pool.put(second);
    assert_eq!([(); 4].map(|()| taken(&pool)), [Some('c'), Some('a'), Some('b'), None]);
}

#[test]
fn an_output_that_is_still_used_is_passed_over_while_others_are_idle() {
    let ([a, b, _], pool) = pool(['a', 'b', 'c']);
    a.is_busy(true);
    b.is_busy(true);
    assert_eq!(taken(&pool), Some('c'));
    b.is_busy(false);
    assert_eq!(taken(&pool), Some('b'));
    // None is idle: the device orders the uses.
    assert_eq!(taken(&pool), Some('a'));
}

#[test]
fn an_output_that_must_be_idle_is_used_when_it_is_and_counts_as_nobodys_meanwhile() {
    let ([a, b], pool) = pool_of(['a', 'b'], true);
    a.is_busy(true);
    b.is_busy(true);
    assert!(taken(&pool).is_none() && pool.is_guarded(), "somebody has to look");
    assert!(!pool.all_leased(), "the user holds none of them");
    b.is_busy(false);
    assert_eq!(taken(&pool), Some('b'));
    assert!(!pool.is_guarded());
}

#[test]
fn a_tensor_is_told_that_the_user_gives_it_back() {
    let ([a], pool) = pool(['a']);
    let output = pool.take().expect("a");
    pool.lease();
    assert_eq!(a.given_back.load(Ordering::Relaxed), 0);
    pool.end_lease(output, Duration::ZERO);
    assert_eq!(a.given_back.load(Ordering::Relaxed), 1);
    let output = pool.take().expect("a");
    pool.put(output);
    assert_eq!(a.given_back.load(Ordering::Relaxed), 1, "the user never had it");
}

#[test]
fn an_output_with_a_guard_is_never_used_and_counts_as_held() {
    let ([a, b], pool) = pool(['a', 'b']);
    a.has_guard(true);
    b.is_busy(true);
    let output = pool.take().expect("b");
    assert_eq!(output.tensor.name, 'b');
    assert!(taken(&pool).is_none() && pool.is_guarded() && !pool.all_leased());
    pool.lease();
    assert!(pool.all_leased(), "one is leased, and the other has a guard");
    a.has_guard(false);
    assert_eq!(taken(&pool), Some('a'));
    assert!(!pool.is_guarded());
}

#[test]
fn lists_that_memory_does_not_hold_are_an_error() {
    for entries in [1 << 46, usize::MAX] {
        let refused = Output::new((), &layout(), entries).expect_err("no machine has that");
        assert!(matches!(refused, DeviceError::OutOfMemory { bytes, .. } if bytes >= 1 << 49), "{refused}");
    }
}
