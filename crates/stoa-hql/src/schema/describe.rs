//! The XML of DESCRIBE TABLE, in Hypertable's elements.

use std::fmt::Write;

use super::{AccessGroup, ColumnFamily, FamilyOptions, GroupOptions, TableSchema, TimeOrder};

impl TableSchema {
    /// The schema as XML; with generation and family ids if `with_ids`. Dropped families are in it.
    pub fn describe(&self, with_ids: bool) -> String {
        let mut xml = Xml::default();
        xml.open("Schema");
        if with_ids {
            xml.element("Generation", self.generation);
        }
        if let Some(ms) = self.options.group_commit_interval_ms {
            xml.element("GroupCommitInterval", ms);
        }
        xml.group_options("AccessGroupDefaults", &self.options.group);
        xml.family_options("ColumnFamilyDefaults", &self.options.family);
        for group in &self.access_groups {
            self.describe_group(group, with_ids, &mut xml);
        }
        xml.close("Schema");
        xml.text
    }

    fn describe_group(&self, group: &AccessGroup, with_ids: bool, xml: &mut Xml) {
        xml.open(&format!("AccessGroup name=\"{}\"", escaped(&group.name)));
        xml.group_options("Options", &group.options);
        xml.family_options("ColumnFamilyDefaults", &group.family_defaults);
        let members = self.families.iter().filter(|family| family.access_group == group.name);
        for family in members {
            xml.family(family, with_ids);
        }
        xml.close("AccessGroup");
    }
}

/// XML text that grows, two blanks deeper with each open element.
#[derive(Default)]
struct Xml {
    text: String,
    depth: usize,
}

impl Xml {
    fn open(&mut self, tag: &str) {
        let _ = writeln!(self.text, "{:1$}<{tag}>", "", 2 * self.depth);
        self.depth += 1;
    }

    fn close(&mut self, name: &str) {
        self.depth -= 1;
        let _ = writeln!(self.text, "{:1$}</{name}>", "", 2 * self.depth);
    }

    fn element(&mut self, name: &str, value: impl ToString) {
        let value = escaped(&value.to_string());
        let _ = writeln!(self.text, "{:1$}<{name}>{value}</{name}>", "", 2 * self.depth);
    }

    fn optional<T: ToString>(&mut self, name: &str, value: Option<T>) {
        if let Some(value) = value {
            self.element(name, value);
        }
    }

    fn group_options(&mut self, name: &str, options: &GroupOptions) {
        self.open(name);
        self.optional("Replication", options.replication);
        self.optional("BlockSize", options.block_size);
        self.optional("Compressor", options.compressor.as_ref());
        self.optional("BloomFilter", options.bloom_filter.as_ref());
        self.optional("InMemory", options.in_memory);
        self.close(name);
    }

    fn family_options(&mut self, name: &str, options: &FamilyOptions) {
        self.open(name);
        self.optional("MaxVersions", options.max_versions);
        self.optional("TTL", options.ttl_s);
        let order = options.time_order.map(|order| match order {
            TimeOrder::NewestFirst => "asc",
            TimeOrder::OldestFirst => "desc",
        });
        self.optional("TimeOrder", order);
        self.optional("Counter", options.counter);
        self.close(name);
    }

    fn family(&mut self, family: &ColumnFamily, with_ids: bool) {
        match with_ids {
            true => self.open(&format!("ColumnFamily id=\"{}\"", family.id)),
            false => self.open("ColumnFamily"),
        }
        self.element("Name", &family.name);
        self.element("AccessGroup", &family.access_group);
        self.element("Deleted", family.deleted);
        self.optional("Index", family.value_index.then_some(true));
        self.optional("QualifierIndex", family.qualifier_index.then_some(true));
        self.family_options("Options", &family.options);
        self.close("ColumnFamily");
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            _ => out.push(c),
        }
    }
    out
}
