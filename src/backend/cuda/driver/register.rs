//! Memory of a source, page-locked in place.

use std::collections::HashMap;
use std::ffi::c_void;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};

use cudarc::driver::{CudaContext, DriverError, sys};

use super::context::bind;
use crate::memory::StableHostMemory;

/// What is locked beyond the memory on either side: up to the next multiple of a kernel's widest read, which lies in the
/// memory's own pages.
const VECTOR: usize = 16;

/// How often each memory (first byte and length) is registered, and where.
static REGISTERED: LazyLock<Mutex<HashMap<(usize, usize), Entry>>> = LazyLock::new(Mutex::default);

struct Entry {
    count: usize,
    /// The context that registered it: it must live as long as the registration.
    context: Arc<CudaContext>,
}

fn registered() -> MutexGuard<'static, HashMap<(usize, usize), Entry>> {
    REGISTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Memory that is page-locked where it is, for every device. Counted: the last one of a memory ends it.
pub(in super::super) struct Registration {
    memory: Arc<dyn StableHostMemory>,
    /// Its address for the device.
    address: u64,
}

impl Registration {
    /// Page-locks a memory, or counts one more use where that has been done.
    pub(in super::super) fn new(
        context: &Arc<CudaContext>,
        memory: &Arc<dyn StableHostMemory>,
    ) -> Result<Self, DriverError> {
        bind(context)?;
        let mut all = registered();
        match all.get_mut(&key(memory.as_ref())) {
            Some(entry) => entry.count += 1,
            None => {
                lock(memory.as_ref())?;
                all.insert(key(memory.as_ref()), Entry { count: 1, context: Arc::clone(context) });
            }
        }
        drop(all);
        // From here on dropping it takes the registration back.
        let mut this = Self { memory: Arc::clone(memory), address: 0 };
        let (base, head, _) = range(memory.as_ref());
        // SAFETY: the driver writes one address; the host memory was registered above, for every device.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&raw mut this.address, base, 0) }.result()?;
        this.address += head as u64;
        Ok(this)
    }

    /// Its address for the device.
    pub(super) fn address(&self) -> u64 {
        self.address
    }

    /// Whether each sample lies inside the memory.
    pub(in super::super) fn covers(&self, offsets: &[u64], sample_bytes: usize) -> bool {
        let Some(last) = self.memory.len().checked_sub(sample_bytes) else { return offsets.is_empty() };
        offsets.iter().all(|&offset| offset <= last as u64)
    }
}

fn key(memory: &dyn StableHostMemory) -> (usize, usize) {
    (memory.address().as_ptr() as usize, memory.len())
}

/// What is locked: its first byte, how far before the memory that is, and how many bytes.
fn range(memory: &dyn StableHostMemory) -> (*mut c_void, usize, usize) {
    let first = memory.address().as_ptr();
    let head = first as usize % VECTOR;
    (first.wrapping_sub(head).cast(), head, (head + memory.len()).next_multiple_of(VECTOR))
}

fn lock(memory: &dyn StableHostMemory) -> Result<(), DriverError> {
    const PORTABLE: u32 = 1;
    const READ_ONLY: u32 = 8;
    let flags = PORTABLE | if memory.is_mapped_read_only() { READ_ONLY } else { 0 };
    let (base, _, bytes) = range(memory);
    // SAFETY: `StableHostMemory` promises that the memory is valid and stays where it is, and the few bytes around it lie in
    // the same pages; the registration keeps the memory alive and ends before it does. The device only ever reads it.
    unsafe { sys::cuMemHostRegister_v2(base, bytes, flags) }.result()
}

impl Drop for Registration {
    fn drop(&mut self) {
        let (key, mut all) = (key(self.memory.as_ref()), registered());
        let Some(entry) = all.get_mut(&key) else { return };
        entry.count -= 1;
        if entry.count > 0 {
            return;
        }
        // Unlocked before the table is, or another thread could register the memory while it still is.
        let bound = bind(&entry.context);
        // SAFETY: registered by the entry's first registration, and this is the last: whoever let a device read it has waited.
        let ended = unsafe { sys::cuMemHostUnregister(range(self.memory.as_ref()).0) }.result();
        if let Err(error) = bound.and(ended) {
            log::debug!("page-locked memory could not be unlocked: {}", super::explain(error));
        }
        all.remove(&key);
    }
}
