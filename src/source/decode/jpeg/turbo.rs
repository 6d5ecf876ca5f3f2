//! The system's libjpeg-turbo through its TurboJPEG API, version 2.0 or later, loaded at run time.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uchar, c_ulong, c_void};
use std::fmt;
use std::ptr::NonNull;
use std::sync::OnceLock;

use super::super::shared_library;
use super::version;

/// Where the library may be, best first.
const NAMES: &[&str] = if cfg!(windows) {
    &["turbojpeg.dll", "libturbojpeg.dll"]
} else if cfg!(target_os = "macos") {
    &[
        "libturbojpeg.dylib",
        "libturbojpeg.0.dylib",
        "/opt/homebrew/lib/libturbojpeg.dylib",
        "/usr/local/lib/libturbojpeg.dylib",
    ]
} else {
    &["libturbojpeg.so.0", "libturbojpeg.so"]
};

/// `TJFLAG_LIMITSCANS`: an error after 500 scans. Versions that do not know it ignore it.
const LIMIT_SCANS: c_int = 32_768;
/// `TJERR_WARNING`: the image is there, but something was wrong.
const WARNING: c_int = 0;

type Handle = *mut c_void;
type Init = unsafe extern "C" fn() -> Handle;
type Destroy = unsafe extern "C" fn(Handle) -> c_int;
type Header =
    unsafe extern "C" fn(Handle, *const c_uchar, c_ulong, *mut c_int, *mut c_int, *mut c_int, *mut c_int) -> c_int;
type Decompress =
    unsafe extern "C" fn(Handle, *const c_uchar, c_ulong, *mut c_uchar, c_int, c_int, c_int, c_int, c_int) -> c_int;
type ErrorText = unsafe extern "C" fn(Handle) -> *mut c_char;
type ErrorCode = unsafe extern "C" fn(Handle) -> c_int;

/// The loaded library. It stays loaded.
pub(in crate::source::decode) struct Library {
    init: Init,
    destroy: Destroy,
    header: Header,
    decompress: Decompress,
    error_text: ErrorText,
    error_code: ErrorCode,
    version: String,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "libjpeg-turbo {}", self.version)
    }
}

/// The library, or why there is none.
pub(in crate::source::decode) fn library() -> Result<&'static Library, &'static String> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    LIBRARY.get_or_init(load).as_ref()
}

fn load() -> Result<Library, String> {
    // SAFETY: libjpeg-turbo runs no code of consequence when it is loaded.
    let library = unsafe { shared_library::load(NAMES) }?;
    // SAFETY: the signature is that of turbojpeg.h since version 1.2.
    let init = unsafe { shared_library::symbol::<Init>(library, "tjInitDecompress") }?;
    // SAFETY: as above.
    let destroy = unsafe { shared_library::symbol::<Destroy>(library, "tjDestroy") }?;
    // SAFETY: as above, since version 1.4.
    let header = unsafe { shared_library::symbol::<Header>(library, "tjDecompressHeader3") }?;
    // SAFETY: as above, since version 1.2.
    let decompress = unsafe { shared_library::symbol::<Decompress>(library, "tjDecompress2") }?;
    // SAFETY: as above, since version 2.0.
    let error_text = unsafe { shared_library::symbol::<ErrorText>(library, "tjGetErrorStr2") }?;
    // SAFETY: as above, since version 2.0.
    let error_code = unsafe { shared_library::symbol::<ErrorCode>(library, "tjGetErrorCode") }?;
    let has = |name: &str| {
        // SAFETY: the symbol is only asked for, not used.
        unsafe { library.get::<Init>(name) }.is_ok()
    };
    let at_least = if has("tj3Init") { "3.x" } else { "2.x" };
    let version = version::of_code_at(decompress as *const () as usize).unwrap_or_else(|| at_least.to_owned());
    Ok(Library { init, destroy, header, decompress, error_text, error_code, version })
}

impl Library {
    /// As the library itself has it, or roughly where it does not say.
    pub(in crate::source::decode) fn version(&self) -> &str {
        &self.version
    }
}

/// A decompressor: one image at a time.
pub(in crate::source::decode) struct Turbo {
    library: &'static Library,
    handle: NonNull<c_void>,
}

/// How an image is wanted.
#[derive(Clone, Copy, Debug)]
pub(super) enum Format {
    Grey = 6,
    Rgb = 0,
    Cmyk = 11,
}

/// What became of an image.
#[derive(Debug)]
pub(super) enum Outcome {
    Whole,
    /// It is there, but something was wrong.
    Warned,
    Failed(String),
}

impl Turbo {
    /// `None` where memory is short.
    pub(in crate::source::decode) fn new(library: &'static Library) -> Option<Self> {
        // SAFETY: the function takes nothing.
        let handle = unsafe { (library.init)() };
        Some(Self { library, handle: NonNull::new(handle)? })
    }

    /// The width and height of an image by its header.
    pub(super) fn size(&mut self, file: &[u8]) -> (i32, i32) {
        let (mut width, mut height, mut sampling, mut color_space) = (0, 0, 0, 0);
        // Its result is not looked at: it is an error where the sampling factors have no name, too.
        // SAFETY: the handle is live and used by nobody else, as `self` is borrowed mutably; the file is readable for its
        // length; the integers are writable.
        unsafe {
            (self.library.header)(
                self.handle.as_ptr(),
                file.as_ptr(),
                file.len() as c_ulong,
                &raw mut width,
                &raw mut height,
                &raw mut sampling,
                &raw mut color_space,
            )
        };
        (width, height)
    }

    /// Decodes to `width` x `height` pixels in rows without gaps, which is one of the library's fractions of the image.
    ///
    /// # Panics
    /// If `out` is not large enough for them.
    pub(super) fn decode(
        &mut self,
        file: &[u8],
        (width, height): (u16, u16),
        format: Format,
        out: &mut [u8],
    ) -> Outcome {
        let channels = match format {
            Format::Grey => 1,
            Format::Rgb => 3,
            Format::Cmyk => 4,
        };
        assert!(out.len() >= usize::from(width) * usize::from(height) * channels, "too small an output");
        // SAFETY: the handle is live and used by nobody else, as `self` is borrowed mutably; the file is readable for its
        // length. The library scales the image to at most `width` x `height` pixels, whatever the file says, and refuses it
        // where it cannot; so it writes no more than what was just checked, in rows of `width` pixels (a pitch of 0).
        let result = unsafe {
            (self.library.decompress)(
                self.handle.as_ptr(),
                file.as_ptr(),
                file.len() as c_ulong,
                out.as_mut_ptr(),
                c_int::from(width),
                0,
                c_int::from(height),
                format as c_int,
                LIMIT_SCANS,
            )
        };
        if result == 0 {
            return Outcome::Whole;
        }
        // SAFETY: the handle is live.
        let code = unsafe { (self.library.error_code)(self.handle.as_ptr()) };
        if code == WARNING { Outcome::Warned } else { Outcome::Failed(self.error_text()) }
    }

    fn error_text(&mut self) -> String {
        // SAFETY: the handle is live.
        let text = unsafe { (self.library.error_text)(self.handle.as_ptr()) };
        if text.is_null() {
            return "no reason given".to_owned();
        }
        // SAFETY: the library gives a zero-terminated text that lives as long as the handle, or for ever.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

impl Drop for Turbo {
    fn drop(&mut self) {
        // SAFETY: the handle is live, and used by nobody afterwards.
        unsafe { (self.library.destroy)(self.handle.as_ptr()) };
    }
}
