//! Profiles of AWS's tools: `~/.aws/credentials` and `~/.aws/config`.
//!
//! ```text
//! [profile reports]          ← in config; [reports] in credentials
//! region = eu-west-1
//! services = local           ← names a section
//! s3 =                       ← indented lines belong to it
//!   addressing_style = path
//!
//! [services local]
//! s3 =
//!   endpoint_url = http://localhost:9000
//! ```

use std::collections::HashMap;

/// Settings by section, and within it by key; `s3.endpoint_url` for an indented one.
type Sections = HashMap<String, HashMap<String, String>>;

/// One profile.
#[derive(Clone, Debug, Default)]
pub(super) struct Profile {
    /// Its name, if somebody gave one.
    pub(super) given: Option<String>,
    /// Whether it is in one of the files.
    pub(super) exists: bool,
    values: HashMap<String, String>,
}

impl Profile {
    /// The profile `given`, or `default`, from the texts of both files; what `credentials` says wins.
    pub(super) fn find(given: Option<String>, credentials: &str, config: &str) -> Self {
        let name = given.as_deref().unwrap_or("default");
        let mut config = parse(config);
        let mut in_config = config.remove(&format!("profile {name}"));
        if in_config.is_none() && name == "default" {
            in_config = config.remove(name);
        }
        let in_credentials = parse(credentials).remove(name);
        let exists = in_config.is_some() || in_credentials.is_some();
        let mut values = in_config.unwrap_or_default();
        let services =
            values.get("services").and_then(|name| config.remove(&format!("services {name}")));
        if let Some(endpoint) = services.and_then(|mut services| services.remove("s3.endpoint_url"))
        {
            values.insert("endpoint_url".to_owned(), endpoint);
        }
        values.extend(in_credentials.unwrap_or_default());
        Self { given, exists, values }
    }

    pub(super) fn get(&self, key: &str) -> Option<String> {
        self.values.get(key).cloned().filter(|value| !value.is_empty())
    }

    pub(super) fn endpoint(&self) -> Option<String> {
        self.get("endpoint_url")
    }

    pub(super) fn path_style(&self) -> Option<bool> {
        match self.get("s3.addressing_style")?.as_str() {
            "path" => Some(true),
            "virtual" => Some(false),
            _ => None,
        }
    }
}

fn parse(text: &str) -> Sections {
    let mut sections = Sections::new();
    let (mut section, mut group) = (String::new(), String::new());
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[') {
            let name = name.split(']').next().unwrap_or_default();
            section = name.split_whitespace().collect::<Vec<_>>().join(" ");
            sections.entry(section.clone()).or_default();
            continue;
        }
        let Some((key, value)) = trimmed.split_once('=') else { continue };
        let (key, value) = (key.trim().to_lowercase(), without_comment(value));
        let is_indented = line.starts_with([' ', '\t']);
        if !is_indented {
            group.clone_from(&key);
        }
        let key = if is_indented { format!("{group}.{key}") } else { key };
        sections.entry(section.clone()).or_default().insert(key, value);
    }
    sections
}

/// A comment begins with ` #` or ` ;`; keys may hold these characters.
fn without_comment(value: &str) -> String {
    let end = [" #", " ;"].iter().filter_map(|sign| value.find(sign)).min().unwrap_or(value.len());
    value.get(..end).unwrap_or(value).trim().to_owned()
}
