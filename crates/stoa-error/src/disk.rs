//! What the operating system says when a disk is full or broken.

use std::error::Error as StdError;
use std::io;

/// `EIO`, which has no kind of its own in the standard library.
const EIO: i32 = 5;

/// Whether `error`, or what caused it, is that a disk, a quota or a limit on a file's size has no
/// room left.
pub fn is_disk_full(error: &(dyn StdError + 'static)) -> bool {
    any_io(error, |io| {
        matches!(
            io.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    })
}

/// Whether `error`, or what caused it, is that a disk could not do what it was asked to.
pub fn is_io_error(error: &(dyn StdError + 'static)) -> bool {
    any_io(error, |io| io.raw_os_error() == Some(EIO))
}

/// Looks at each error of the chain, and into those that an [`io::Error`] wraps.
fn any_io(error: &(dyn StdError + 'static), holds: impl Fn(&io::Error) -> bool) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        let mut io = error.downcast_ref::<io::Error>();
        while let Some(found) = io {
            if holds(found) {
                return true;
            }
            io = found.get_ref().and_then(|inner| inner.downcast_ref::<io::Error>());
        }
        next = error.source();
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn a_full_disk_is_found_below_other_errors() {
        let full = || io::Error::from_raw_os_error(28);
        assert!(is_disk_full(&full()));
        assert!(is_disk_full(&io::Error::other(full())));
        assert!(is_disk_full(&Error::unavailable("store").with_source(full())));
        assert!(!is_disk_full(&io::Error::from_raw_os_error(EIO)));
        assert!(is_io_error(&io::Error::from_raw_os_error(EIO)));
        assert!(!is_io_error(&full()));
    }
}
