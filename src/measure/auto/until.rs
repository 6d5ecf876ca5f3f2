//! Waiting for a batch no longer than until a deadline.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Instant;

use crate::backend::Backend;
use crate::error::LoadError;
use crate::loader::{Batch, Epoch};

/// Looks before the thread sleeps: what is about to come costs no wake-up then.
const LOOKS: usize = 16;

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// The next batch; `None` at the end of the epoch, or if none came before the deadline.
pub(super) fn next_before<B: Backend>(
    epoch: &mut Epoch<'_, B>,
    deadline: Instant,
) -> Option<Result<Batch<B>, LoadError>> {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut next = pin!(epoch.next_async());
    for look in 0.. {
        if let Poll::Ready(next) = next.as_mut().poll(&mut context) {
            return next;
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        if look < LOOKS { thread::yield_now() } else { thread::park_timeout(left) }
    }
    None
}
