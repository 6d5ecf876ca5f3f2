//! The fence that ends a worker's stores.

#![allow(unsafe_code)]

/// Makes this thread's stores visible to a device before whatever this thread stores next, which tells another thread to send them.
///
/// Atomics order stores to ordinary memory between CPUs. Slots may be write-combined memory, and their reader is a device.
#[inline]
pub(super) fn stores() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is part of every x86-64 processor. Streaming and write-combined stores are ordered by nothing else.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a barrier changes neither memory nor registers. Release stores order within the inner shareable domain, the CPUs; a device
    // is in the outer one. It is the barrier of Linux's `dma_wmb`, which stands between a descriptor and its doorbell for the same reason.
    // No `nomem`: the compiler must not move stores across it either.
    unsafe {
        std::arch::asm!("dmb oshst", options(nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}
