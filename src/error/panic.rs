//! What a caught panic said.

use std::any::Any;

/// The text of a panic, where it has one.
pub(crate) fn panic_text(panic: &(dyn Any + Send)) -> Option<&str> {
    panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str))
}

/// The same, and the end of the panic.
pub(crate) fn panic_message(panic: Box<dyn Any + Send>) -> String {
    if let Some(text) = panic_text(&*panic) {
        return text.to_owned();
    }
    // Dropping a value of an unknown type can panic in turn, and then nobody would learn of the first panic.
    #[expect(clippy::mem_forget, reason = "a few bytes of a panic that nobody can read")]
    std::mem::forget(panic);
    "no message".to_owned()
}
