//! The system's libwebp, loaded at run time.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fmt;
use std::ptr;
use std::sync::OnceLock;

use super::super::shared_library;

/// Where the library may be, best first.
const NAMES: &[&str] = if cfg!(windows) {
    &["libwebp.dll", "libwebp-7.dll", "webp.dll"]
} else if cfg!(target_os = "macos") {
    &["libwebp.7.dylib", "libwebp.dylib", "/opt/homebrew/lib/libwebp.dylib", "/usr/local/lib/libwebp.dylib"]
} else {
    &["libwebp.so.7", "libwebp.so"]
};

type Version = unsafe extern "C" fn() -> c_int;
type Info = unsafe extern "C" fn(*const u8, usize, *mut c_int, *mut c_int) -> c_int;
type DecodeInto = unsafe extern "C" fn(*const u8, usize, *mut u8, usize, c_int) -> *mut u8;

/// The loaded library. It stays loaded.
pub(in crate::source::decode) struct Library {
    info: Info,
    rgb_into: DecodeInto,
    rgba_into: DecodeInto,
    version: String,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "libwebp {}", self.version)
    }
}

/// The library, or why there is none.
pub(in crate::source::decode) fn library() -> Result<&'static Library, &'static String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref()
}

fn load() -> Result<Library, String> {
    // SAFETY: libwebp runs no code of consequence when it is loaded.
    let library = unsafe { shared_library::load(NAMES) }?;
    // SAFETY: the signature is that of webp/decode.h since version 0.1.
    let version = unsafe { shared_library::symbol::<Version>(library, "WebPGetDecoderVersion") }?;
    // SAFETY: as above.
    let info = unsafe { shared_library::symbol::<Info>(library, "WebPGetInfo") }?;
    // SAFETY: as above.
    let rgb_into = unsafe { shared_library::symbol::<DecodeInto>(library, "WebPDecodeRGBInto") }?;
    // SAFETY: as above.
    let rgba_into = unsafe { shared_library::symbol::<DecodeInto>(library, "WebPDecodeRGBAInto") }?;
    // SAFETY: the function has no preconditions.
    let number = unsafe { version() };
    let version = format!("{}.{}.{}", number >> 16, number >> 8 & 0xff, number & 0xff);
    Ok(Library { info, rgb_into, rgba_into, version })
}

impl Library {
    pub(in crate::source::decode) fn version(&self) -> &str {
        &self.version
    }

    /// Decodes a still image of this width and height to RGB or RGBA, in rows without gaps. Whether it did.
    ///
    /// # Panics
    /// If `out` is not as large as they need.
    pub(super) fn decode(&self, file: &[u8], (width, height): (u32, u32), channels: usize, out: &mut [u8]) -> bool {
        let row = width as usize * channels;
        assert!(channels == 3 || channels == 4, "RGB or RGBA");
        assert_eq!(out.len(), row * height as usize, "another size of output");
        let (mut known_width, mut known_height) = (0, 0);
        // SAFETY: the file is readable for its length, and the integers are writable.
        let known = unsafe {
            (self.info)(file.as_ptr(), file.len(), ptr::from_mut(&mut known_width), ptr::from_mut(&mut known_height))
        };
        let wanted = (i64::from(width), i64::from(height));
        let Ok(stride) = c_int::try_from(row) else { return false };
        if known == 0 || (i64::from(known_width), i64::from(known_height)) != wanted {
            return false;
        }
        let decode = if channels == 3 { self.rgb_into } else { self.rgba_into };
        // SAFETY: the file is readable for its length. The library writes rows of `stride` bytes within the size of `out`
        // that it is told, and refuses a smaller one than the image needs.
        let result = unsafe { decode(file.as_ptr(), file.len(), out.as_mut_ptr(), out.len(), stride) };
        !result.is_null()
    }
}
