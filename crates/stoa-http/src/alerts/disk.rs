//! How full a disk is.

use std::path::Path;

/// The share of a file system that is used, 0 to 1, as ordinary accounts see it; `None` where the system does not say.
/// Blocks until it says.
pub(crate) fn used_share(path: &Path) -> Option<f64> {
    let stat = rustix::fs::statvfs(path).ok()?;
    let used = stat.f_blocks.saturating_sub(stat.f_bfree) as f64;
    // Blocks that only root may use count for nobody else.
    let all = used + stat.f_bavail as f64;
    (all > 0.0).then(|| used / all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_is_used_in_part() {
        let share = used_share(Path::new("/")).unwrap();
        assert!((0.0..=1.0).contains(&share), "{share}");
        assert_eq!(used_share(Path::new("/there/is/no/such/folder")), None);
    }
}
