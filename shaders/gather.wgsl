// Samples that lie anywhere in imported memory: where they are, and their bytes.
//
// One dispatch reads through one window, a bound range of the memory. y and z count the window's samples.

override batch: u32; // samples of a full batch
override bytes: u32; // of a sample

// The samples of the batch whose part of the tensor is bound.
struct Segment {
    first: u32,
    samples: u32,
}

struct Window {
    index: u32,
    count: u32, // of all windows
}

@group(0) @binding(1) var<uniform> segment: Segment;
@group(1) @binding(0) var<storage, read> source: array<u32>;
// For each window: its first entry, and how many. Then the entries by window: place within the batch, first byte within the
// window. Then one for each place of the batch: window, first byte.
@group(1) @binding(1) var<storage, read> list: array<vec2<u32>>;
@group(1) @binding(2) var<uniform> window: Window;

struct Job {
    present: bool,
    start: u32, // byte of the window
    place: u32, // within the segment
}

// The window's sample of this number, if there is one and the segment has its place.
fn job(number: u32) -> Job {
    let run = list[window.index];
    var found = Job(false, 0u, 0u);
    if number < run.y {
        let entry = list[window.count + run.x + number];
        found = Job(entry.x >= segment.first && entry.x - segment.first < segment.samples, entry.y, entry.x - segment.first);
    }
    return found;
}

fn source_word(index: u32) -> u32 {
    if index < arrayLength(&source) {
        return source[index];
    }
    return 0u;
}

// Four bytes, which may start at any byte.
fn word_at(start: u32) -> u32 {
    let shift = (start & 3u) * 8u;
    var word = source_word(start >> 2u) >> shift;
    if shift != 0u {
        word |= source_word((start >> 2u) + 1u) << (32u - shift);
    }
    return word;
}
