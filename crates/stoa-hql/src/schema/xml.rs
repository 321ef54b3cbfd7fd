//! Reads the XML of DESCRIBE TABLE back: CREATE TABLE … WITH, ALTER TABLE … WITH.
//!
//! Knows elements, attributes, the five named entities, comments and the first line `<?xml …?>`;
//! elements that DESCRIBE TABLE does not write are refused, so that a slip of the pen is not
//! passed over.

use stoa_error::{Error, Result};

use super::{
    AlterAction, FamilyDefinition, FamilyOptions, GroupDefinition, GroupOptions, IndexDefinition,
    TableDefinitions, TableOptions, TableSchema, TimeOrder,
};

/// Elements within elements; DESCRIBE TABLE writes five.
const DEPTH_MAX: usize = 16;

impl TableDefinitions {
    /// The definitions and options of a schema in XML. Dropped families are left out.
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) with the line.
    pub fn from_xml(text: &str) -> Result<(TableDefinitions, TableOptions)> {
        let root = Reader { text, at: 0 }.document()?;
        if root.name != "Schema" {
            return Err(root.unknown());
        }
        let mut definitions = TableDefinitions::default();
        let mut options = TableOptions::default();
        for child in &root.children {
            match child.name {
                "Generation" => {}
                "GroupCommitInterval" => options.group_commit_interval_ms = Some(child.number()?),
                "AccessGroupDefaults" => options.group = group_options(child)?,
                "ColumnFamilyDefaults" => options.family = family_options(child)?,
                "AccessGroup" => read_group(child, &mut definitions)?,
                _ => return Err(child.unknown()),
            }
        }
        Ok((definitions, options))
    }
}

impl TableSchema {
    /// The changes that turn this schema into the one that `target` defines: families are added,
    /// dropped, and given the options of the target.
    pub fn changes_to(&self, target: &TableDefinitions) -> Vec<AlterAction> {
        let known = |name: &str| self.family(name).is_some();
        let (old, new): (Vec<_>, Vec<_>) =
            target.families.iter().cloned().partition(|family| known(&family.name));
        let keeps = |name: &str| target.families.iter().any(|family| family.name == name);
        let gone: Vec<String> =
            self.living().filter(|f| !keeps(&f.name)).map(|f| f.name.clone()).collect();
        let (old_indices, new_indices) =
            target.indices.iter().cloned().partition(|index| known(&index.family));
        let group_exists = |name: &str| self.access_groups.iter().any(|g| g.name == name);
        let mut old_groups = Vec::new();
        let mut new_groups = Vec::new();
        for group in &target.groups {
            let (olds, news) = group.families.iter().cloned().partition(|name| known(name));
            if group_exists(&group.name) {
                old_groups.push(GroupDefinition { families: olds, ..group.clone() });
                let plain = GroupDefinition {
                    families: news,
                    options: GroupOptions::default(),
                    family_defaults: FamilyOptions::default(),
                    name: group.name.clone(),
                };
                new_groups.push(plain);
            } else {
                new_groups.push(GroupDefinition { families: news, ..group.clone() });
            }
        }
        let definitions =
            |families, indices, groups| TableDefinitions { families, indices, groups };
        vec![
            AlterAction::DropFamilies(gone),
            AlterAction::Modify(definitions(old, old_indices, old_groups)),
            AlterAction::Add(definitions(new, new_indices, new_groups)),
        ]
    }
}

fn read_group(element: &Element<'_>, definitions: &mut TableDefinitions) -> Result<()> {
    let mut group = GroupDefinition {
        name: element.attribute("name").ok_or_else(|| element.error("has no name"))?,
        families: Vec::new(),
        options: GroupOptions::default(),
        family_defaults: FamilyOptions::default(),
    };
    for child in &element.children {
        match child.name {
            "Generation" => {}
            "Options" => group.options = group_options(child)?,
            "ColumnFamilyDefaults" => group.family_defaults = family_options(child)?,
            "ColumnFamily" => read_family(child, &mut group, definitions)?,
            _ => return Err(child.unknown()),
        }
    }
    definitions.groups.push(group);
    Ok(())
}

fn read_family(
    element: &Element<'_>,
    group: &mut GroupDefinition,
    definitions: &mut TableDefinitions,
) -> Result<()> {
    let mut name = None;
    let mut options = FamilyOptions::default();
    let (mut deleted, mut value_index, mut qualifier_index) = (false, false, false);
    for child in &element.children {
        match child.name {
            "Generation" | "AccessGroup" => {}
            "Name" => name = Some(child.text.clone()),
            "Deleted" => deleted = child.boolean()?,
            "Index" => value_index = child.boolean()?,
            "QualifierIndex" => qualifier_index = child.boolean()?,
            "Options" => options = family_options(child)?,
            _ => return Err(child.unknown()),
        }
    }
    if deleted {
        return Ok(());
    }
    let name = name.ok_or_else(|| element.error("has no <Name>"))?;
    group.families.push(name.clone());
    let index = |of_qualifiers| IndexDefinition { family: name.clone(), of_qualifiers };
    definitions.indices.extend(value_index.then(|| index(false)));
    definitions.indices.extend(qualifier_index.then(|| index(true)));
    definitions.families.push(FamilyDefinition { name, options });
    Ok(())
}

fn group_options(element: &Element<'_>) -> Result<GroupOptions> {
    let mut options = GroupOptions::default();
    for child in &element.children {
        match child.name {
            "Replication" => options.replication = Some(child.number()?),
            "BlockSize" => options.block_size = Some(child.number()?),
            "Compressor" => options.compressor = Some(child.text.clone()),
            "BloomFilter" => options.bloom_filter = Some(child.text.clone()),
            "InMemory" => options.in_memory = Some(child.boolean()?),
            _ => return Err(child.unknown()),
        }
    }
    Ok(options)
}

fn family_options(element: &Element<'_>) -> Result<FamilyOptions> {
    let mut options = FamilyOptions::default();
    for child in &element.children {
        match child.name {
            "MaxVersions" => options.max_versions = Some(child.number()?),
            "TTL" => options.ttl_s = Some(child.number()?),
            "TimeOrder" => options.time_order = Some(child.time_order()?),
            "Counter" => options.counter = Some(child.boolean()?),
            _ => return Err(child.unknown()),
        }
    }
    Ok(options)
}

/// An element with its text (entities resolved, blanks around it gone) and what it holds.
struct Element<'a> {
    name: &'a str,
    attributes: &'a str,
    line: usize,
    text: String,
    children: Vec<Element<'a>>,
}

impl Element<'_> {
    fn error(&self, what: impl std::fmt::Display) -> Error {
        problem(self.line, format!("<{}> {what}", self.name))
    }

    fn unknown(&self) -> Error {
        self.error("is not known here").with_hint("DESCRIBE TABLE prints what is")
    }

    fn number<T: std::str::FromStr>(&self) -> Result<T> {
        self.text.parse().map_err(|_| self.error(format!("holds \"{}\", no number", self.text)))
    }

    fn boolean(&self) -> Result<bool> {
        let text = self.text.to_ascii_lowercase();
        text.parse().map_err(|_| self.error(format!("holds \"{text}\", not true or false")))
    }

    fn time_order(&self) -> Result<TimeOrder> {
        match self.text.to_ascii_lowercase().as_str() {
            "asc" => Ok(TimeOrder::NewestFirst),
            "desc" => Ok(TimeOrder::OldestFirst),
            _ => Err(self.error(format!("holds \"{}\", not asc or desc", self.text))),
        }
    }

    fn attribute(&self, name: &str) -> Option<String> {
        let (_, value) = self.attributes.split_once(&format!("{name}=\""))?;
        value.split_once('"').map(|(value, _)| resolved(value))
    }
}

fn problem(line: usize, message: String) -> Error {
    Error::invalid(format!("schema line {line}: {message}")).with_sqlstate("2200N")
}

/// Goes through the text from the front.
struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn document(mut self) -> Result<Element<'a>> {
        self.skip_asides();
        let root = self.element(0)?;
        self.skip_asides();
        match self.rest().is_empty() {
            true => Ok(root),
            false => Err(self.error("there is more after </Schema>")),
        }
    }

    fn rest(&self) -> &'a str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn error(&self, what: &str) -> Error {
        let read = self.text.get(..self.at).unwrap_or_default();
        problem(read.matches('\n').count() + 1, what.to_owned())
    }

    /// Passes over blanks, comments and processing instructions.
    fn skip_asides(&mut self) {
        loop {
            let rest = self.rest();
            let blanks = rest.len() - rest.trim_start().len();
            self.at += blanks;
            let rest = self.rest();
            let end = match rest {
                _ if rest.starts_with("<!--") => rest.find("-->").map(|at| at + 3),
                _ if rest.starts_with("<?") => rest.find("?>").map(|at| at + 2),
                _ => return,
            };
            self.at += end.unwrap_or(rest.len());
        }
    }

    fn element(&mut self, depth: usize) -> Result<Element<'a>> {
        if depth > DEPTH_MAX {
            return Err(self.error("elements lie too deep"));
        }
        let rest = self.rest();
        let opened = rest.strip_prefix('<').and_then(|tag| tag.split_once('>'));
        let (tag, _) = opened.ok_or_else(|| self.error("an element should start here"))?;
        let line = self.text.get(..self.at).unwrap_or_default().matches('\n').count() + 1;
        self.at += tag.len() + 2;
        let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
        let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let mut element =
            Element { name, attributes, line, text: String::new(), children: Vec::new() };
        if !empty {
            self.content(&mut element, depth)?;
        }
        Ok(element)
    }

    fn content(&mut self, element: &mut Element<'a>, depth: usize) -> Result<()> {
        loop {
            self.skip_asides();
            let rest = self.rest();
            if let Some(close) = rest.strip_prefix("</") {
                let (name, _) = close.split_once('>').unwrap_or((close, ""));
                if name.trim_end() != element.name {
                    return Err(self.error(&format!("</{name}> closes <{}>", element.name)));
                }
                self.at += name.len() + 3;
                return Ok(());
            }
            if rest.starts_with('<') {
                let child = self.element(depth + 1)?;
                element.children.push(child);
                continue;
            }
            let end = rest.find('<').unwrap_or(rest.len());
            if end == 0 {
                return Err(self.error(&format!("<{}> is not closed", element.name)));
            }
            element.text.push_str(resolved(&rest[..end]).trim_end());
            self.at += end;
        }
    }
}

fn resolved(text: &str) -> String {
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}
