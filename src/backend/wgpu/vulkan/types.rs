//! Which kind of memory a buffer gets, and how that is called. Pure arithmetic on what the driver lists.

use serde::{Deserialize, Serialize};

const DEVICE_LOCAL: u32 = 1;
const HOST_VISIBLE: u32 = 2;
const HOST_COHERENT: u32 = 4;
const HOST_CACHED: u32 = 8;
const NAMES: [(u32, &str); 4] = [
    (DEVICE_LOCAL, "DEVICE_LOCAL"),
    (HOST_VISIBLE, "HOST_VISIBLE"),
    (HOST_COHERENT, "HOST_COHERENT"),
    (HOST_CACHED, "HOST_CACHED"),
];
/// Memory that needs no flushes; every driver has some.
const COHERENT: u32 = HOST_VISIBLE | HOST_COHERENT;

/// How the CPU sees the host memory of a `system-ring`, where the driver has both kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HostCache {
    /// Through its caches, as ordinary memory. Devices snoop them when they read.
    #[default]
    Cached,
    /// Around them, in write-combined stores.
    Uncached,
}

/// A kind of memory that the driver lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryType {
    /// Its place in the driver's list.
    pub index: u32,
    /// `VkMemoryPropertyFlags`.
    pub flags: u32,
    /// The heap's place in the driver's list.
    pub heap: u32,
    /// Whether the heap is the device's own.
    pub heap_is_local: bool,
    /// The heap's bytes.
    pub heap_bytes: u64,
}

/// All kinds of memory that a driver lists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemoryTypes(pub Vec<MemoryType>);

impl MemoryTypes {
    /// The types among `bits` that the CPU can write without flushing. Those with flags that have no name here are protected, or
    /// need features of their own.
    fn coherent(&self, bits: u32) -> impl Iterator<Item = &MemoryType> {
        let known = NAMES.iter().fold(0, |all, (flag, _)| all | flag);
        self.0.iter().filter(move |ty| {
            bits & 1u32.checked_shl(ty.index).unwrap_or(0) != 0
                && ty.flags & COHERENT == COHERENT
                && ty.flags & !known == 0
        })
    }

    /// Host memory, and the device's own only where there is no other; then the wanted kind of caching.
    pub fn system(&self, cache: HostCache, bits: u32) -> Option<&MemoryType> {
        let unwanted = |ty: &&MemoryType| {
            // Where both are the same memory there is nothing to write around: it is read best through the caches.
            let cached = cache == HostCache::Cached || ty.flags & DEVICE_LOCAL != 0;
            (ty.flags & DEVICE_LOCAL != 0, (ty.flags & HOST_CACHED != 0) != cached, ty.index)
        };
        self.coherent(bits).min_by_key(unwanted)
    }

    /// The device's own memory where the CPU reaches it, and host memory elsewhere. As gpu-allocator chooses for buffers that
    /// wgpu maps for writing.
    pub fn near_device(&self, bits: u32) -> Option<&MemoryType> {
        self.coherent(bits).min_by_key(|ty| (ty.flags & DEVICE_LOCAL == 0, ty.index))
    }

    /// The device's own memory, and what the CPU reaches only where there is no other.
    pub fn device(&self, bits: u32) -> Option<&MemoryType> {
        let known = NAMES.iter().fold(0, |all, (flag, _)| all | flag);
        let fits = |ty: &&MemoryType| {
            bits & 1u32.checked_shl(ty.index).unwrap_or(0) != 0
                && ty.flags & DEVICE_LOCAL != 0
                && ty.flags & !known == 0
        };
        self.0.iter().filter(fits).min_by_key(|ty| (ty.flags & HOST_VISIBLE != 0, ty.index))
    }

    /// Whether all memory that the CPU can write is the device's own as well.
    pub fn unified(&self) -> bool {
        self.coherent(u32::MAX).all(|ty| ty.flags & DEVICE_LOCAL != 0)
    }

    /// The largest heap of the device's own that the CPU can write: all of a card's memory with resizable BAR, a small window of it
    /// without.
    pub fn window_bytes(&self) -> Option<u64> {
        let reached = |ty: &&MemoryType| ty.heap_is_local && ty.flags & HOST_VISIBLE != 0;
        self.0.iter().filter(reached).map(|ty| ty.heap_bytes).max()
    }

    /// The largest heap of the device's own: where a card's memory is seen through a small window too, that is a heap of its own.
    pub fn device_bytes(&self) -> Option<u64> {
        self.0.iter().filter(|ty| ty.heap_is_local).map(|ty| ty.heap_bytes).max()
    }

    /// The type in words: `type 3: HOST_VISIBLE|HOST_COHERENT|HOST_CACHED, heap 1 (system memory)`.
    pub fn describe(&self, ty: &MemoryType) -> String {
        let names: Vec<&str> = NAMES.iter().filter(|(flag, _)| ty.flags & flag != 0).map(|&(_, name)| name).collect();
        let heap = match (self.unified(), ty.heap_is_local) {
            (true, _) => "unified",
            (false, true) => "device memory",
            (false, false) => "system memory",
        };
        format!("type {}: {}, heap {} ({heap})", ty.index, names.join("|"), ty.heap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn types(all: &[(u32, u32)]) -> MemoryTypes {
        let one = |(index, &(flags, heap)): (u32, &(u32, u32))| MemoryType {
            index,
            flags,
            heap,
            heap_is_local: heap == 0,
            heap_bytes: 1 << 30,
        };
        MemoryTypes((0..).zip(all).map(one).collect())
    }

    fn index(ty: Option<&MemoryType>) -> Option<u32> {
        ty.map(|ty| ty.index)
    }

    #[test]
    fn a_card_with_a_large_window_stages_in_system_memory_and_wgpu_in_its_own() {
        let card = types(&[(0, 1), (1, 0), (6, 1), (14, 1), (7, 0)]);
        assert_eq!(index(card.system(HostCache::Cached, u32::MAX)), Some(3));
        assert_eq!(index(card.system(HostCache::Uncached, u32::MAX)), Some(2));
        assert_eq!(index(card.near_device(u32::MAX)), Some(4));
        let ring = card.system(HostCache::Cached, u32::MAX).expect("there is one");
        assert_eq!(card.describe(ring), "type 3: HOST_VISIBLE|HOST_COHERENT|HOST_CACHED, heap 1 (system memory)");
        assert_eq!(index(card.device(u32::MAX)), Some(1));
        assert_eq!((card.window_bytes(), types(&[(0, 1), (1, 0), (6, 1)]).window_bytes()), (Some(1 << 30), None));
        let mapped = card.near_device(u32::MAX).expect("there is one");
        assert_eq!(card.describe(mapped), "type 4: DEVICE_LOCAL|HOST_VISIBLE|HOST_COHERENT, heap 0 (device memory)");
    }

    #[test]
    fn unified_memory_is_taken_cached_and_called_by_its_name() {
        let laptop = types(&[(1, 0), (7, 0), (15, 0)]);
        for cache in [HostCache::Cached, HostCache::Uncached] {
            assert_eq!(index(laptop.system(cache, u32::MAX)), Some(2));
        }
        assert_eq!(index(laptop.device(0b110)), Some(1));
        let ty = laptop.system(HostCache::Cached, u32::MAX).expect("there is one");
        assert_eq!(
            laptop.describe(ty),
            "type 2: DEVICE_LOCAL|HOST_VISIBLE|HOST_COHERENT|HOST_CACHED, heap 0 (unified)"
        );
    }

    #[test]
    fn memory_that_needs_flushes_or_features_or_is_not_allowed_is_left_out() {
        let odd = types(&[(10, 1), (6 | 64, 1), (6, 1), (14, 1)]);
        assert_eq!(index(odd.system(HostCache::Cached, 0b0111)), Some(2));
        assert_eq!(index(odd.system(HostCache::Cached, 0b0011)), None);
        assert_eq!(index(odd.near_device(u32::MAX)), Some(2));
    }
}
