//! A data file must be listed once in a snapshot: twice, its rows would be read twice.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::Problem;

/// Which manifests list which live files, and which snapshots those manifests.
#[derive(Debug, Default)]
pub(super) struct Homes {
    manifests: HashMap<String, u32>,
    /// Manifests per file, once for every entry.
    files: HashMap<String, Vec<u32>>,
    snapshots: BTreeMap<i64, HashSet<u32>>,
}

impl Homes {
    /// Notes an entry; gives back whether the file is new.
    pub(super) fn lists(&mut self, manifest: &str, file: &str) -> bool {
        let manifest = self.id(manifest);
        let homes = self.files.entry(file.to_owned()).or_default();
        homes.push(manifest);
        homes.len() == 1
    }

    /// Notes that a snapshot has a manifest.
    pub(super) fn has(&mut self, snapshot: i64, manifest: &str) {
        let manifest = self.id(manifest);
        self.snapshots.entry(snapshot).or_default().insert(manifest);
    }

    /// Different files.
    pub(super) fn files(&self) -> usize {
        self.files.len()
    }

    /// Different manifests.
    pub(super) fn manifests(&self) -> usize {
        self.manifests.len()
    }

    /// Files that a snapshot lists more than once.
    pub(super) fn problems(&self) -> impl Iterator<Item = Problem> {
        self.files.iter().filter(|(_, homes)| homes.len() > 1).filter_map(|(file, homes)| {
            let twice = |(_, manifests): &(&i64, &HashSet<u32>)| {
                homes.iter().filter(|home| manifests.contains(home)).count() > 1
            };
            let (snapshot, _) = self.snapshots.iter().find(twice)?;
            let what = format!("snapshot {snapshot} lists the data file more than once");
            Some(Problem { place: file.clone(), what })
        })
    }

    fn id(&mut self, manifest: &str) -> u32 {
        if let Some(known) = self.manifests.get(manifest) {
            return *known;
        }
        let id = u32::try_from(self.manifests.len()).unwrap_or(u32::MAX);
        self.manifests.insert(manifest.to_owned(), id);
        id
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_is_told_from_moved() {
        let mut homes = Homes::default();
        assert!(homes.lists("m1", "a"));
        assert!(homes.lists("m1", "b"));
        // Rewritten without b.
        assert!(!homes.lists("m2", "a"));
        homes.has(1, "m1");
        homes.has(2, "m2");
        assert_eq!(homes.problems().count(), 0);
        homes.has(3, "m1");
        homes.has(3, "m2");
        let problems: Vec<_> = homes.problems().map(|problem| problem.place).collect();
        assert_eq!(problems, ["a"]);
        assert_eq!((homes.files(), homes.manifests()), (2, 2));
    }
}
