//! One thread that waits for the device on behalf of asynchronous callers, started when the first of them comes.

use std::sync::OnceLock;

use crate::backend::Tensor;
use crate::error::DeviceError;

type Call = Box<dyn FnOnce() + Send>;

/// Where asynchronous callers have their tensors waited for. The thread ends when this is dropped.
#[derive(Debug, Default)]
pub(super) struct Waiter {
    calls: OnceLock<Option<flume::Sender<Call>>>,
}

impl Waiter {
    /// Resolves when the device has written the tensor.
    ///
    /// # Errors
    /// The device's error.
    pub(super) async fn wait<T: Tensor>(&self, tensor: T) -> Result<(), DeviceError> {
        let (reply, answer) = flume::bounded(1);
        let waited = tensor.clone();
        let call: Call = Box::new(move || {
            // The caller may have lost interest.
            let _ = reply.send(waited.wait());
        });
        let sent = self.calls.get_or_init(start).as_ref().is_some_and(|calls| calls.send(call).is_ok());
        match (sent, answer.recv_async().await) {
            (true, Ok(result)) => result,
            // Without a thread the caller's own has to wait.
            _ => tensor.wait(),
        }
    }
}

fn start() -> Option<flume::Sender<Call>> {
    let (calls, queue) = flume::unbounded::<Call>();
    let serve = move || queue.into_iter().for_each(|call| call());
    let thread = std::thread::Builder::new().name("gpufeed-waiter".to_owned()).spawn(serve);
    match thread {
        Ok(_) => Some(calls),
        Err(error) => {
            log::error!("no thread to wait for the device: {error}; asynchronous callers will block");
            None
        }
    }
}
