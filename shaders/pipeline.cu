// Frames become a network's input: each pixel of the tensor is a weighted sum of the frame's pixels, as its sample's record says, and
// then one linear map of its components, a scale and a sum. The same as pipeline.wgsl, which says more.
//
// A block makes a tile of one sample's tensor. Which pixels of the frame its columns and rows are made of, and with what weights, is
// computed once for each of them and kept in shared memory. Threads then go down a column each, so that neighbours in a row lie in one
// warp and single elements are stored without gaps. Where there are too few pixels for a device, several threads share each.
//
// Where windows are near, of few pixels each way, a tile's part of the frame is read into shared memory once, in whole words. A thread
// makes several rows one after the other, and keeps the lines of the frame that it has resampled: the next row needs few others.

using u8 = unsigned char;
using u16 = unsigned short;
using u32 = unsigned int;
using u64 = unsigned long long;

constexpr u32 GROUP = 256;
constexpr u32 COLUMNS = 32; // of a tile
constexpr u32 MOST_ROWS = 64; // of a tile
constexpr u32 PLACES = COLUMNS + MOST_ROWS;
constexpr u32 LINES = GROUP / COLUMNS;
constexpr int MOST_TAPS = 32; // of which weights are kept
constexpr int NEAR_TAPS = 4; // of a window that is near
constexpr u32 ROOM = 3072; // words of the frame that a tile keeps
constexpr u32 BEYOND = NEAR_TAPS + 1; // words that a pixel at their end may read, and does not use

// What is constant for a lane.
struct Lane {
    u64 sample_bytes;
    u32 pitch;
    u32 frame_width;
    u32 frame_height;
    u32 plane1; // the first byte of the chroma planes
    u32 plane2;
    u32 left_sited; // chroma samples lie in the left column of their pixels
    u32 whole_words; // pixels of four bytes lie at multiples of four
    u32 antialias;
    u32 keeps_values; // a mask, whose first component is the only channel
    u32 width; // of the tensor
    u32 height;
    u32 channels; // 1 or 3
    u32 planar;
    u32 dtype; // 0 f32, 1 f16, 2 bf16, 3 bytes
    u32 tile_rows; // a multiple of LINES, or 2
    u32 rows_each; // of a thread; or none, and several threads share each pixel
    u32 sharers; // of a pixel, as a power of two
    int zero_point;
    float least; // of a byte, before the zero point is added
    float most;
    float scale[3];
    float bias[3];
    float fill[3]; // already scaled
};

enum Format { ONE, THREE, FOUR, NV12, I420 };
enum Taps { NEAREST, BILINEAR, BICUBIC };

// `Geometry::words`.
struct Record {
    float source[4];
    float resized[2];
    float offset[2];
    float code;
    float half_step[2];
    float unused;
    float color[3][4];
};

__device__ __forceinline__ float byte_at(const u8* at) {
    return static_cast<float>(__ldg(at));
}

template <Format FORMAT>
__device__ __forceinline__ float2 chroma_at(const u8* frame, const Lane& lane, u32 x, u32 y) {
    if (FORMAT == NV12) {
        const u8* pair = frame + lane.plane1 + static_cast<size_t>(y) * lane.pitch + 2 * x;
        return make_float2(byte_at(pair), byte_at(pair + 1));
    }
    const u8* at = frame + static_cast<size_t>(y) * (lane.pitch / 2) + x;
    return make_float2(byte_at(at + lane.plane1), byte_at(at + lane.plane2));
}

__device__ __forceinline__ float2 between(float2 a, float2 b, float part) {
    return make_float2(a.x + (b.x - a.x) * part, a.y + (b.y - a.y) * part);
}

// Chroma between its samples, at a pixel's centre.
template <Format FORMAT>
__device__ __forceinline__ float2 chroma_of(const u8* frame, const Lane& lane, u32 x, u32 y) {
    const u32 last_x = (lane.frame_width + 1) / 2 - 1, last_y = (lane.frame_height + 1) / 2 - 1;
    const u32 column = lane.left_sited ? x / 2 + 1 : (x + 1) / 2;
    const u32 row = (y + 1) / 2;
    const u32 x0 = min(max(column, 1u) - 1, last_x), x1 = min(column, last_x);
    const u32 y0 = min(max(row, 1u) - 1, last_y), y1 = min(row, last_y);
    const bool odd_x = x & 1, odd_y = y & 1;
    const float across = lane.left_sited ? (odd_x ? 0.5f : 0.0f) : (odd_x ? 0.25f : 0.75f);
    const float2 above = between(chroma_at<FORMAT>(frame, lane, x0, y0), chroma_at<FORMAT>(frame, lane, x1, y0), across);
    const float2 below = between(chroma_at<FORMAT>(frame, lane, x0, y1), chroma_at<FORMAT>(frame, lane, x1, y1), across);
    return between(above, below, odd_y ? 0.25f : 0.75f);
}

// The components of the pixel whose first byte this is, as they are stored.
template <Format FORMAT>
__device__ __forceinline__ float3 components_at(const u8* pixel, bool whole_words) {
    if (FORMAT == ONE) {
        return make_float3(byte_at(pixel), 0.0f, 0.0f);
    }
    if (FORMAT == FOUR && whole_words) {
        const u32 word = __ldg(reinterpret_cast<const u32*>(pixel));
        return make_float3(static_cast<float>(word & 255u), static_cast<float>((word >> 8) & 255u),
                           static_cast<float>((word >> 16) & 255u));
    }
    return make_float3(byte_at(pixel), byte_at(pixel + 1), byte_at(pixel + 2));
}

// The frame's pixels along one axis that one of the tensor's is made of: `first` to `last`, counted from the pixel in which its
// centre falls.
struct Window {
    int base;
    float part; // where in that pixel
    float shrink; // one over how much the filter is widened
    int first;
    int last;
};

template <Taps TAPS>
__device__ __forceinline__ Window window_of(int at, int length, int resized, float half_step, bool antialias) {
    const int number = (2 * at + 1) * length;
    Window window = {static_cast<int>(static_cast<float>(number) * half_step), 0.0f, 1.0f, 0, 0};
    int rest = number - window.base * 2 * resized;
    // The product was rounded.
    if (rest < 0) {
        window.base -= 1;
        rest += 2 * resized;
    } else if (rest >= 2 * resized) {
        window.base += 1;
        rest -= 2 * resized;
    }
    window.part = static_cast<float>(rest) * half_step;
    if (TAPS == NEAREST) {
        return window;
    }
    float reach = TAPS == BILINEAR ? 1.0f : 2.0f;
    if (antialias && length > resized) {
        const float stretch = static_cast<float>(2 * length) * half_step;
        reach *= stretch;
        window.shrink = 1.0f / stretch;
    }
    window.first = max(__float2int_rd(window.part - 0.5f - reach) + 1, -window.base);
    window.last = min(__float2int_ru(window.part - 0.5f + reach) - 1, length - 1 - window.base);
    return window;
}

// At a distance from the filter's centre, in units of its own width.
template <Taps TAPS>
__device__ __forceinline__ float weight_of(float distance) {
    if (TAPS == NEAREST) {
        return 1.0f;
    }
    const float d = fabsf(distance);
    if (TAPS == BILINEAR) {
        return fmaxf(1.0f - d, 0.0f);
    }
    const float near = (1.5f * d - 2.5f) * d * d + 1.0f;
    const float far = ((-0.5f * d + 2.5f) * d - 4.0f) * d + 2.0f;
    return d < 1.0f ? near : d < 2.0f ? far : 0.0f;
}

// The pixels of the frame's axis that a column or a row of the tile is made of.
struct Span {
    u32 begin;
    int count; // none where it is filled
    float first; // the first one's distance from the filter's centre
    float shrink;
    float scale; // one over the sum of the weights
};

// What a tile's threads share where windows may be of any size.
struct Far {
    // Of columns and then of rows, divided by their sum, and at least two of each span, the second of which may be zero.
    float weights[MOST_TAPS][PLACES];
    float4 parts[GROUP]; // of pixels that threads share
};

// What a tile's threads share.
struct Tile {
    Span spans[PLACES]; // of columns and then of rows
    Span edges[4]; // of the first column that is not filled and the last one, and of such rows
    // Of windows that are near: a column's weights from the first one on and zeros behind them, a row's the other way round.
    float4 near[PLACES];
    float color[3][4];
    int most; // pixels of a window, at most
    u32 is_plain; // no component is made of others
    union {
        Far far;
        u32 pixels[ROOM]; // of the frame, where windows are near
    };
};

// The most pixels that an axis of a sample has for one of the tensor's. Rounding may add one where the filter is widened.
template <Taps TAPS>
__device__ __forceinline__ int most_taps(int length, int resized, float half_step, bool antialias) {
    if (TAPS == NEAREST) {
        return 1;
    }
    const float reach = TAPS == BILINEAR ? 2.0f : 4.0f;
    if (!antialias || length <= resized) {
        return static_cast<int>(reach);
    }
    return __float2int_ru(reach * (static_cast<float>(2 * length) * half_step)) + 1;
}

// The span of the tensor's pixel at `at` on this axis, whose weights are yet to be summed.
template <Taps TAPS>
__device__ __forceinline__ Span span_of(int at, int axis, const Record& record, const Lane& lane) {
    const u32 code = static_cast<u32>(record.code);
    const int stored = code & 4 ? 1 - axis : axis;
    const int resized = static_cast<int>(record.resized[axis]);
    const int last = static_cast<int>(stored ? lane.frame_height : lane.frame_width) - 1;
    Span span = {0, 0, 0.0f, 1.0f, 1.0f};
    at -= static_cast<int>(record.offset[axis]);
    if (at < 0 || at >= resized) {
        return span;
    }
    at = (code >> axis) & 1 ? resized - 1 - at : at;
    const Window window = window_of<TAPS>(at, static_cast<int>(record.source[2 + stored]), resized, record.half_step[axis], lane.antialias);
    // A record that is right changes nothing here; no other one is to read outside of the frame.
    const int corner = min(max(window.base + static_cast<int>(record.source[stored]), 0), last);
    const int first = max(window.first, -corner);
    const int end = min(window.last, last - corner);
    int count = end >= first ? end - first + 1 : 0;
    // The compiler knows the number to be a minimum of maxima, and would count by a chain of them. Of such a chain driver 580.159 makes
    // one pixel too many on an H200: the number is hidden from it.
    asm("" : "+r"(count));
    span.begin = static_cast<u32>(corner + first);
    span.count = count;
    span.first = (static_cast<float>(first) + 0.5f - window.part) * window.shrink;
    span.shrink = window.shrink;
    return span;
}

// The weights of a span, each PLACES floats behind the one before.
template <Taps TAPS>
__device__ __forceinline__ void weigh(Span& span, float* weights) {
    float sum = 0.0f;
#pragma unroll 1
    for (int tap = 0; tap < span.count; tap++) {
        const float weight = weight_of<TAPS>(span.first + static_cast<float>(tap) * span.shrink);
        sum += weight;
        if (tap < MOST_TAPS) {
            weights[tap * PLACES] = weight;
        }
    }
    span.scale = 1.0f / sum;
#pragma unroll 1
    for (int tap = 0; tap < min(span.count, MOST_TAPS); tap++) {
        weights[tap * PLACES] *= span.scale;
    }
    if (span.count < 2) {
        weights[PLACES] = 0.0f;
    }
}

// A sample's frame, whose steps lead to the next pixel in the tensor's x and y.
struct Frame {
    const u8* bytes;
    u32 step_x;
    u32 step_y;
    bool transposed;
};

// The components of a pixel, as they are stored, `x` and `y` along the tensor's axes.
template <Format FORMAT>
__device__ __forceinline__ float3 stored_at(const Frame& frame, const Lane& lane, u32 x, u32 y) {
    if (FORMAT == NV12 || FORMAT == I420) {
        const u32 column = frame.transposed ? y : x, row = frame.transposed ? x : y;
        const float2 chroma = chroma_of<FORMAT>(frame.bytes, lane, column, row);
        return make_float3(byte_at(frame.bytes + static_cast<size_t>(row) * lane.pitch + column), chroma.x, chroma.y);
    }
    return components_at<FORMAT>(frame.bytes + (y * frame.step_y + x * frame.step_x), lane.whole_words);
}

__device__ __forceinline__ void add(float3& sum, float3 stored, float weight) {
    sum.x += stored.x * weight;
    sum.y += stored.y * weight;
    sum.z += stored.z * weight;
}

// The mean of at most two by two pixels, whose loads do not wait for each other.
template <Format FORMAT, Taps TAPS>
__device__ __forceinline__ float3 mean_of_few(const Frame& frame, const Lane& lane, const Tile& tile, u32 column, u32 row) {
    const Span &across = tile.spans[column], &down = tile.spans[COLUMNS + row];
    if (TAPS == NEAREST) {
        return stored_at<FORMAT>(frame, lane, across.begin, down.begin);
    }
    const u32 x = across.begin, next_x = x + (across.count > 1 ? 1 : 0);
    const u32 y = down.begin, next_y = y + (down.count > 1 ? 1 : 0);
    const float3 a = stored_at<FORMAT>(frame, lane, x, y), b = stored_at<FORMAT>(frame, lane, next_x, y);
    const float3 c = stored_at<FORMAT>(frame, lane, x, next_y), d = stored_at<FORMAT>(frame, lane, next_x, next_y);
    const float left = tile.far.weights[0][column], right = tile.far.weights[1][column];
    float3 above = make_float3(0.0f, 0.0f, 0.0f), below = above, mean = above;
    add(above, a, left);
    add(above, b, right);
    add(below, c, left);
    add(below, d, right);
    add(mean, above, tile.far.weights[0][COLUMNS + row]);
    add(mean, below, tile.far.weights[1][COLUMNS + row]);
    return mean;
}

// Of the rows of a pixel's window every `threads`-th, from `part` on, weighted: all such parts add up to the mean.
template <Format FORMAT, Taps TAPS, bool KEPT>
__device__ __forceinline__ float3 mean_of(const Frame& frame, const Lane& lane, const Tile& tile, u32 column, u32 row, int part,
                                          int threads) {
    const Span across = tile.spans[column], down = tile.spans[COLUMNS + row];
    auto weight_at = [&](const Span& span, u32 place, int tap) {
        return KEPT ? tile.far.weights[tap][place] : weight_of<TAPS>(span.first + static_cast<float>(tap) * span.shrink) * span.scale;
    };
    float3 mean = make_float3(0.0f, 0.0f, 0.0f);
#pragma unroll 1
    for (int v = part; v < down.count; v += threads) {
        const u32 y = down.begin + static_cast<u32>(v);
        float3 line = make_float3(0.0f, 0.0f, 0.0f);
        // Loads that do not wait for each other; of frames with chroma one pixel has nine.
#pragma unroll FORMAT == NV12 || FORMAT == I420 || !KEPT ? 1 : 4
        for (int u = 0; u < across.count; u++) {
            add(line, stored_at<FORMAT>(frame, lane, across.begin + static_cast<u32>(u), y),
                weight_at(across, column, u));
        }
        add(mean, line, weight_at(down, COLUMNS + row, v));
    }
    return mean;
}

// Fills what the tile's threads share: a warp the columns, others the rows, one where they end, one the colours.
template <Taps TAPS>
__device__ __forceinline__ void measure(Tile& tile, const Record& record, const Lane& lane, u32 first_x, u32 first_y) {
    const u32 place = threadIdx.x;
    const int end_x = static_cast<int>(min(first_x + COLUMNS, lane.width));
    const int end_y = static_cast<int>(min(first_y + lane.tile_rows, lane.height));
    if (place < COLUMNS + lane.tile_rows) {
        const bool is_row = place >= COLUMNS;
        const u32 at = is_row ? first_y + place - COLUMNS : first_x + place;
        Span span = span_of<TAPS>(static_cast<int>(at), is_row, record, lane);
        weigh<TAPS>(span, tile.far.weights[0] + place);
        tile.spans[place] = span;
        // What is not near has no such weights.
        const int before = is_row ? NEAR_TAPS - span.count : 0;
        auto weight = [&](int tap) {
            return tap >= before && tap - before < span.count ? tile.far.weights[tap - before][place] : 0.0f;
        };
        tile.near[place] = make_float4(weight(0), weight(1), weight(2), weight(3));
    } else if (place >= PLACES && place < PLACES + 4) {
        const int axis = static_cast<int>(place - PLACES) / 2, offset = static_cast<int>(record.offset[axis]);
        const int first = max(static_cast<int>(axis ? first_y : first_x), offset);
        const int last = min(axis ? end_y : end_x, offset + static_cast<int>(record.resized[axis])) - 1;
        // In front of all where there is none.
        const int at = first > last ? offset - 1 : place % 2 ? last : first;
        tile.edges[place - PLACES] = span_of<TAPS>(at, axis, record, lane);
    } else if (place >= PLACES + 32 && place < PLACES + 44) {
        const u32 row = (place - PLACES - 32) / 4, column = place % 4;
        const float factor = record.color[row][column];
        tile.color[row][column] = factor;
        tile.is_plain = __all_sync(0xfff, factor == (row == column ? 1.0f : 0.0f));
    } else if (place == PLACES + 64) {
        const int swap = static_cast<u32>(record.code) & 4 ? 1 : 0;
        auto most = [&](int axis, int stored) {
            return most_taps<TAPS>(static_cast<int>(record.source[2 + stored]), static_cast<int>(record.resized[axis]),
                                   record.half_step[axis], lane.antialias);
        };
        tile.most = max(most(0, swap), most(1, 1 - swap));
    }
}

// Puts one element of the tensor there, as wide as it is.
__device__ __forceinline__ void put(float* at, float value, const Lane&) {
    *at = value;
}

__device__ __forceinline__ void put(u16* at, float value, const Lane& lane) {
    if (lane.dtype == 1) {
        asm("cvt.rn.f16.f32 %0, %1;" : "=h"(*at) : "f"(value));
    } else {
        const u32 bits = __float_as_uint(value);
        *at = static_cast<u16>((bits + ((bits >> 16) & 1u) + 0x7fffu) >> 16);
    }
}

__device__ __forceinline__ void put(u8* at, float value, const Lane& lane) {
    *at = static_cast<u8>(__float2int_rn(fminf(fmaxf(value, lane.least), lane.most)) + lane.zero_point);
}

template <u32 CHANNELS, typename Element>
__device__ __forceinline__ void put_all(Element* at, u32 step, const float (&values)[3], const Lane& lane) {
#pragma unroll
    for (u32 channel = 0; channel < CHANNELS; channel++) {
        put(at + channel * static_cast<size_t>(step), values[channel], lane);
    }
}

// Stores a pixel's channels, `step` elements behind each other.
template <u32 CHANNELS>
__device__ __forceinline__ void store(void* tensor, u32 element, u32 step, const float (&values)[3], const Lane& lane) {
    if (lane.dtype == 0) {
        put_all<CHANNELS>(static_cast<float*>(tensor) + element, step, values, lane);
    } else if (lane.dtype == 3) {
        put_all<CHANNELS>(static_cast<u8*>(tensor) + element, step, values, lane);
    } else {
        put_all<CHANNELS>(static_cast<u16*>(tensor) + element, step, values, lane);
    }
}

// Where a sample's elements go.
struct Out {
    void* tensor; // the sample's
    u32 pixel; // elements from one pixel of a row to the next
    u32 channel; // and from one channel to the next
};

__device__ __forceinline__ Out out_of(void* tensor, const Lane& lane, u32 sample) {
    const u32 area = lane.width * lane.height;
    const u64 bytes = lane.dtype == 0 ? 4 : lane.dtype == 3 ? 1 : 2;
    u8* first = static_cast<u8*>(tensor) + bytes * sample * lane.channels * area;
    return {first, lane.planar ? 1 : lane.channels, lane.planar ? area : 1};
}

// A pixel's channels, from the mean of its components, which is cut to what a byte holds unless `is_cut` says that it needs not be.
template <u32 CHANNELS>
__device__ __forceinline__ void write(const Out& out, const Lane& lane, const Tile& tile, u32 index, bool inside, float3 mean, bool is_cut) {
    float values[3] = {mean.x, mean.y, mean.z};
    if (!is_cut) {
#pragma unroll
        for (u32 channel = 0; channel < CHANNELS; channel++) {
            const float* row = tile.color[channel];
            const bool kept = CHANNELS == 1 && lane.keeps_values;
            const float mixed = kept ? mean.x : row[0] * mean.x + (row[1] * mean.y + (row[2] * mean.z + row[3]));
            values[channel] = fminf(fmaxf(mixed, 0.0f), 255.0f);
        }
    }
#pragma unroll
    for (u32 channel = 0; channel < CHANNELS; channel++) {
        const float value = values[channel] * lane.scale[channel] + lane.bias[channel];
        values[channel] = inside ? value : lane.fill[channel];
    }
    store<CHANNELS>(out.tensor, index * out.pixel, out.channel, values, lane);
}

// Bytes of a pixel whose components lie together.
template <Format FORMAT>
constexpr u32 PIXEL = FORMAT == ONE ? 1 : FORMAT == THREE ? 3 : 4;

// The pixels of the frame that a tile is made of, its lines `stride` bytes behind each other, each where it lies in its words.
struct Part {
    u32 x;
    u32 y;
    u32 columns;
    u32 lines;
    u32 words; // of a line
    u32 stride;
    u32 lead; // bytes of the first line's first word that are in front of it
    const u8* first;
};

// The pixels between two edges of a tile, which follow each other in one direction or the other: how many, and the first.
__device__ __forceinline__ u32 range_of(const Span& a, const Span& b, u32& begin) {
    begin = min(a.begin, b.begin);
    return max(a.begin + static_cast<u32>(a.count), b.begin + static_cast<u32>(b.count)) - begin;
}

template <Format FORMAT>
__device__ __forceinline__ Part part_of(const Tile& tile, const u8* frame, u32 pitch) {
    Part part;
    part.columns = range_of(tile.edges[0], tile.edges[1], part.x);
    part.lines = range_of(tile.edges[2], tile.edges[3], part.y);
    part.first = frame + part.y * static_cast<size_t>(pitch) + part.x * PIXEL<FORMAT>;
    part.lead = static_cast<u32>(reinterpret_cast<u64>(part.first)) & 3;
    // Of up to three bytes before the first one, and of what a last word has behind the last.
    part.words = (part.columns * PIXEL<FORMAT> + 6) / 4;
    // As long as the frame's but for whole words, so that lines lie in their words as they do there.
    part.stride = part.words * 4 + (pitch & 3);
    return part;
}

// Reads a tile's part of the frame, a line a warp.
__device__ __forceinline__ void read_part(Tile& tile, const Part& part, u32 pitch) {
    const u32 first = threadIdx.x / 32;
#pragma unroll 1
    for (u32 word = threadIdx.x % 32; word < part.words; word += 32) {
        const u8* from = part.first + first * static_cast<size_t>(pitch);
        u32 to = part.lead + first * part.stride;
        // Loads that do not wait for each other.
#pragma unroll 4
        for (u32 line = first; line < part.lines; line += GROUP / 32) {
            // What lies around a line in its words is the batch's own, or the records' behind it.
            const u32* words = reinterpret_cast<const u32*>(reinterpret_cast<u64>(from) & ~static_cast<u64>(3));
            tile.pixels[to / 4 + word] = __ldg(words + word);
            from += GROUP / 32 * static_cast<size_t>(pitch);
            to += GROUP / 32 * part.stride;
        }
    }
}

// The mean of neighbours in a line, the first of which begins at this byte of what a tile has read.
template <Format FORMAT, int TAPS>
__device__ __forceinline__ float3 line_of(const Tile& tile, u32 byte, const float (&weights)[4]) {
    constexpr u32 SIZE = PIXEL<FORMAT>;
    constexpr u32 WORDS = (TAPS * SIZE + 3) / 4;
    const u32* at = tile.pixels + byte / 4;
    u32 words[WORDS], last = at[0];
#pragma unroll
    for (u32 word = 0; word < WORDS; word++) {
        const u32 next = at[word + 1];
        // By its lowest five bits.
        words[word] = __funnelshift_r(last, next, byte * 8);
        last = next;
    }
    auto component = [&](u32 number) { return static_cast<float>((words[number / 4] >> (number % 4 * 8)) & 255u); };
    float3 line = make_float3(0.0f, 0.0f, 0.0f);
#pragma unroll
    for (u32 tap = 0; tap < TAPS; tap++) {
        const u32 first = tap * SIZE;
        const bool colored = FORMAT != ONE;
        add(line, make_float3(component(first), colored ? component(first + 1) : 0.0f, colored ? component(first + 2) : 0.0f), weights[tap]);
    }
    return line;
}

// Makes a tile of windows of at most TAPS pixels each way, of a frame that is not turned: as many rows a thread, one after the other, as
// the tile has for each. `is_cut` is for `write`.
template <Format FORMAT, int TAPS, u32 CHANNELS>
__device__ __forceinline__ void make_near(const Tile& tile, const Lane& lane, const Out& out, const Part& part, bool backwards, bool is_cut,
                                          u32 first_x, u32 first_y) {
    const u32 column = threadIdx.x % COLUMNS, x = first_x + column, each = lane.rows_each;
    const u32 first_row = threadIdx.x / COLUMNS * each, first = first_y + first_row;
    if (x >= lane.width || first >= lane.height) {
        return;
    }
    const u32 rows = min(each, lane.height - first);
    const float4 near = tile.near[column];
    const float weights[4] = {near.x, near.y, near.z, near.w};
    const u32 pixels = static_cast<u32>(tile.spans[column].count), from = tile.spans[column].begin - part.x;
    // So of every record that is right: no other one is to read anything else.
    const u32 begin = part.lead + (from + pixels <= part.columns ? from * PIXEL<FORMAT> : 0);
    float3 lines[TAPS];
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) {
        lines[tap] = make_float3(0.0f, 0.0f, 0.0f);
    }
    // Down the frame, whichever way that is in the tensor.
    u32 row = COLUMNS + first_row + (backwards ? rows - 1 : 0);
    u32 index = ((first_y + row - COLUMNS) * lane.width + x);
    const u32 step = backwards ? ~0u : 1, step_index = backwards ? 0 - lane.width : lane.width;
    // The line behind the last that was resampled.
    u32 next = 0;
#pragma unroll 1
    for (u32 number = 0; number < rows; number++, row += step, index += step_index) {
        const u32 line = tile.spans[row].begin - part.y, count = static_cast<u32>(tile.spans[row].count);
        const u32 end = min(line + count, part.lines);
        next = max(next, line);
#pragma unroll 1
        for (; next < end; next++) {
#pragma unroll
            for (int tap = 0; tap + 1 < TAPS; tap++) {
                lines[tap] = lines[tap + 1];
            }
            lines[TAPS - 1] = line_of<FORMAT, TAPS>(tile, next * part.stride + begin, weights);
        }
        const float4 near_down = tile.near[row];
        const float down[4] = {near_down.x, near_down.y, near_down.z, near_down.w};
        float3 mean = make_float3(0.0f, 0.0f, 0.0f);
#pragma unroll
        for (int tap = 0; tap < TAPS; tap++) {
            add(mean, lines[tap], down[NEAR_TAPS - TAPS + tap]);
        }
        write<CHANNELS>(out, lane, tile, index, pixels > 0 && count > 0, mean, is_cut);
    }
}

// A sample's record goes to the output with its tensor, where it is wanted there.
__device__ __forceinline__ void tell(const Record& record, float* told) {
    constexpr u32 WORDS = sizeof(Record) / sizeof(float);
    if (told != nullptr && blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x < WORDS) {
        told[blockIdx.z * WORDS + threadIdx.x] = reinterpret_cast<const float*>(&record)[threadIdx.x];
    }
}

template <Format FORMAT, Taps TAPS>
__device__ __forceinline__ void pipeline(const u8* __restrict__ pixels, const Record* __restrict__ records,
                                         void* __restrict__ tensor, float* __restrict__ told, const Lane& lane) {
    __shared__ Tile tile;
    const u32 sample = blockIdx.z;
    const Out out = out_of(tensor, lane, sample);
    const u32 first_x = blockIdx.x * COLUMNS, first_y = blockIdx.y * lane.tile_rows;
    const Record& record = records[sample];
    tell(record, told);
    measure<TAPS>(tile, record, lane, first_x, first_y);
    const u32 code = static_cast<u32>(record.code);
    const bool transposed = code & 4;
    constexpr bool CHROMA = FORMAT == NV12 || FORMAT == I420;
    constexpr u32 SIZE = PIXEL<FORMAT>;
    const Frame frame = {pixels + sample * lane.sample_bytes, transposed ? lane.pitch : SIZE, transposed ? SIZE : lane.pitch, transposed};
    const u32 column = threadIdx.x % COLUMNS, line = threadIdx.x / COLUMNS;
    const u32 threads = 1u << lane.sharers, part = line & (threads - 1);
    __syncthreads();
    const int most = tile.most;
    // Which is so of all threads alike.
    if constexpr (!CHROMA && TAPS != NEAREST) {
        if (most <= NEAR_TAPS && !transposed && lane.rows_each > 0) {
            const Part near = part_of<FORMAT>(tile, frame.bytes, lane.pitch);
            if (near.lines * near.stride / 4 + BEYOND <= ROOM) {
                // Between bytes lie bytes, unless weights may be negative.
                const bool backwards = code & 2, is_cut = TAPS == BILINEAR && tile.is_plain;
                read_part(tile, near, lane.pitch);
                __syncthreads();
                if (TAPS == BILINEAR && most <= 2) {
                    lane.channels == 3 ? make_near<FORMAT, 2, 3>(tile, lane, out, near, backwards, is_cut, first_x, first_y)
                                       : make_near<FORMAT, 2, 1>(tile, lane, out, near, backwards, is_cut, first_x, first_y);
                } else {
                    lane.channels == 3 ? make_near<FORMAT, 4, 3>(tile, lane, out, near, backwards, is_cut, first_x, first_y)
                                       : make_near<FORMAT, 4, 1>(tile, lane, out, near, backwards, is_cut, first_x, first_y);
                }
                return;
            }
        }
    }
#pragma unroll 1
    for (u32 row = line >> lane.sharers; row < lane.tile_rows; row += LINES >> lane.sharers) {
        const bool inside = tile.spans[column].count > 0 && tile.spans[COLUMNS + row].count > 0;
        float3 mean = make_float3(0.0f, 0.0f, 0.0f);
        if (inside) {
            if (TAPS == NEAREST || (!CHROMA && most <= 2)) {
                mean = part == 0 ? mean_of_few<FORMAT, TAPS>(frame, lane, tile, column, row) : mean;
            } else if (most <= MOST_TAPS) {
                mean = mean_of<FORMAT, TAPS, true>(frame, lane, tile, column, row, static_cast<int>(part), static_cast<int>(threads));
            } else {
                mean = mean_of<FORMAT, TAPS, false>(frame, lane, tile, column, row, static_cast<int>(part), static_cast<int>(threads));
            }
        }
        if (threads > 1) {
            // There is one row a thread: all come here once.
            tile.far.parts[threadIdx.x] = make_float4(mean.x, mean.y, mean.z, 0.0f);
            __syncthreads();
#pragma unroll 1
            for (u32 other = 1; part == 0 && other < threads; other++) {
                const float4 sum = tile.far.parts[threadIdx.x + other * COLUMNS];
                add(mean, make_float3(sum.x, sum.y, sum.z), 1.0f);
            }
        }
        const u32 x = first_x + column, y = first_y + row;
        if (part == 0 && x < lane.width && y < lane.height) {
            lane.channels == 3 ? write<3>(out, lane, tile, y * lane.width + x, inside, mean, false)
                               : write<1>(out, lane, tile, y * lane.width + x, inside, mean, false);
        }
    }
}

// BLOCKS of a multiprocessor have room for their registers; chroma takes more of them.
#define KERNEL(name, FORMAT, TAPS, BLOCKS)                                                                                  \
    extern "C" __global__ void __launch_bounds__(GROUP, BLOCKS) name(const u8* pixels, const Record* records, void* tensor, \
                                                                     float* told, const Lane lane) {                        \
        pipeline<FORMAT, TAPS>(pixels, records, tensor, told, lane);                                                              \
    }
#define KERNELS(name, FORMAT, BLOCKS)                 \
    KERNEL(name##_nearest, FORMAT, NEAREST, BLOCKS)   \
    KERNEL(name##_bilinear, FORMAT, BILINEAR, BLOCKS) \
    KERNEL(name##_bicubic, FORMAT, BICUBIC, BLOCKS)

KERNELS(one, ONE, 5)
KERNELS(three, THREE, 5)
KERNELS(four, FOUR, 5)
KERNELS(nv12, NV12, 4)
KERNELS(i420, I420, 4)
