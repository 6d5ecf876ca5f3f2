//! What the driver reports, as this crate's errors.

use std::sync::{Arc, OnceLock};

use cudarc::driver::{CudaContext, DriverError, sys::CUresult};

use super::driver::{self, explain};
use crate::error::DeviceError;

/// Why a device was lost, once it is. Clones are the same flag; the first reason stays.
#[derive(Clone, Debug, Default)]
pub(super) struct LostFlag {
    reason: Arc<OnceLock<String>>,
    /// Asked before the device is taken for lost. None while it is being opened, when an error speaks for itself.
    context: Option<Arc<CudaContext>>,
}

impl LostFlag {
    pub(super) fn new(context: &Arc<CudaContext>) -> Self {
        Self { reason: Arc::default(), context: Some(Arc::clone(context)) }
    }

    /// The first reason is the cause, and later ones are its consequences.
    pub(super) fn set(&self, reason: impl Into<String>) {
        let _ = self.reason.set(reason.into());
    }

    /// Fails if the device was lost.
    pub(super) fn check(&self) -> Result<(), DeviceError> {
        match self.reason.get() {
            Some(reason) => Err(DeviceError::Lost { reason: reason.clone() }),
            None => Ok(()),
        }
    }

    /// The error of an operation. After one that is sticky the device is lost, if it says so itself.
    pub(super) fn error(&self, what: &str, error: DriverError) -> DeviceError {
        if is_loss(error, || self.context.as_ref().map_or(Err(error), driver::probe)) {
            self.set(format!("{what}: {}", explain(error)));
        }
        match self.check() {
            Err(lost) => lost,
            Ok(()) => DeviceError::Refused { message: format!("{what}: {}", explain(error)) },
        }
    }

    /// The error of an allocation on the device.
    pub(super) fn allocation(&self, what: &str, bytes: u64, error: DriverError) -> DeviceError {
        match error.0 {
            CUresult::CUDA_ERROR_OUT_OF_MEMORY => DeviceError::OutOfMemory { what: what.to_owned(), bytes },
            _ => self.error(what, error),
        }
    }
}

/// Whether an error means that the device is lost: it is one of those that stay, and the device still answers with one of them.
fn is_loss(error: DriverError, probe: impl FnOnce() -> Result<(), DriverError>) -> bool {
    is_sticky(error) && probe().is_err_and(is_sticky)
}

/// Whether the context is of no use any more: each of its later calls fails too.
pub(super) fn is_sticky(error: DriverError) -> bool {
    matches!(
        error.0,
        CUresult::CUDA_ERROR_ILLEGAL_ADDRESS
            | CUresult::CUDA_ERROR_LAUNCH_FAILED
            | CUresult::CUDA_ERROR_LAUNCH_TIMEOUT
            | CUresult::CUDA_ERROR_ECC_UNCORRECTABLE
            | CUresult::CUDA_ERROR_NVLINK_UNCORRECTABLE
            | CUresult::CUDA_ERROR_HARDWARE_STACK_ERROR
            | CUresult::CUDA_ERROR_ILLEGAL_INSTRUCTION
            | CUresult::CUDA_ERROR_MISALIGNED_ADDRESS
            | CUresult::CUDA_ERROR_INVALID_ADDRESS_SPACE
            | CUresult::CUDA_ERROR_INVALID_PC
            | CUresult::CUDA_ERROR_ASSERT
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_INVALID_CONTEXT
            | CUresult::CUDA_ERROR_DEVICE_UNAVAILABLE
            | CUresult::CUDA_ERROR_DEINITIALIZED
            | CUresult::CUDA_ERROR_UNKNOWN
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_reason_of_a_loss_stays() {
        let flag = LostFlag::default();
        assert_eq!(flag.check(), Ok(()));
        flag.set("the cause");
        flag.clone().set("a consequence");
        assert_eq!(flag.check(), Err(DeviceError::Lost { reason: "the cause".to_owned() }));
    }

    #[test]
    fn a_device_is_lost_only_if_it_says_so_itself() {
        let (sticky, passing) =
            (DriverError(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS), DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY));
        assert!(is_loss(sticky, || Err(sticky)));
        assert!(!is_loss(sticky, || Ok(())), "an error of somebody else's that reached us");
        assert!(!is_loss(sticky, || Err(passing)), "short of memory, and alive");
        assert!(!is_loss(passing, || panic!("an error that passes is not worth a question")));
    }

    #[test]
    fn errors_that_a_context_survives_are_told_from_those_it_does_not() {
        assert!(is_sticky(DriverError(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)));
        assert!(is_sticky(DriverError(CUresult::CUDA_ERROR_LAUNCH_FAILED)));
        assert!(!is_sticky(DriverError(CUresult::CUDA_ERROR_INVALID_VALUE)));
        assert!(!is_sticky(DriverError(CUresult::CUDA_ERROR_OUT_OF_MEMORY)));
    }
}
