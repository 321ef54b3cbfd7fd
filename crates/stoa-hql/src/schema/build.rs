//! From the definitions of CREATE TABLE to a schema.

use stoa_error::{Error, Result};

use super::{
    AccessGroup, ColumnFamily, DEFAULT_GROUP, FAMILIES_MAX, FamilyOptions, GroupOptions,
    TableOptions, TableSchema,
};
use crate::cell::FamilyId;

/// A family as CREATE TABLE and ALTER TABLE define it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FamilyDefinition {
    /// Its name.
    pub name: String,
    /// What is written beside it.
    pub options: FamilyOptions,
}

/// An index as CREATE TABLE and ALTER TABLE define it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexDefinition {
    /// The family it is over.
    pub family: String,
    /// Over qualifiers rather than values.
    pub of_qualifiers: bool,
}

/// An access group as CREATE TABLE and ALTER TABLE define it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDefinition {
    /// Its name.
    pub name: String,
    /// Its families; none is allowed.
    pub families: Vec<String>,
    /// Physical options.
    pub options: GroupOptions,
    /// Defaults of its families.
    pub family_defaults: FamilyOptions,
}

/// What stands in the parentheses of CREATE TABLE, of ADD and of MODIFY.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableDefinitions {
    /// Families in the order in which they are written.
    pub families: Vec<FamilyDefinition>,
    /// Indices.
    pub indices: Vec<IndexDefinition>,
    /// Access groups.
    pub groups: Vec<GroupDefinition>,
}

impl TableSchema {
    /// The schema of a new table.
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) if something is defined twice, named but not
    /// defined, or there are more than 255 families.
    pub fn create(definitions: &TableDefinitions, options: TableOptions) -> Result<TableSchema> {
        options.family.check("the table")?;
        let mut schema = TableSchema { generation: 1, options, ..TableSchema::default() };
        schema.add(definitions)?;
        Ok(schema)
    }

    /// Adds families, groups and indices.
    pub(super) fn add(&mut self, definitions: &TableDefinitions) -> Result<()> {
        self.check_new_families(definitions)?;
        for group in &definitions.groups {
            self.add_group(group)?;
        }
        let homes = homes(definitions)?;
        let needs_default = homes.contains(&DEFAULT_GROUP);
        if needs_default && self.group_mut(DEFAULT_GROUP).is_none() {
            self.push_group(DEFAULT_GROUP, GroupOptions::default(), FamilyOptions::default());
        }
        // Ids follow the order of the groups (see the module's doc).
        let groups: Vec<String> = self.access_groups.iter().map(|g| g.name.clone()).collect();
        for group in groups {
            let members =
                definitions.families.iter().zip(&homes).filter(|(_, home)| **home == group);
            for (family, _) in members {
                self.push_family(family, &group)?;
            }
        }
        definitions.indices.iter().try_for_each(|index| self.add_index(index))
    }

    /// Adds an index over a family that has none of the kind.
    pub(super) fn add_index(&mut self, index: &IndexDefinition) -> Result<()> {
        let known = self.require_family(&index.family)?;
        if known.options.is_counter() {
            return Err(Error::invalid(format!(
                "the counter '{}' can have no index",
                index.family
            ))
            .with_sqlstate("42P16")
            .with_hint("its value is made when it is read"));
        }
        let id = known.id;
        let family = self.families.iter_mut().find(|family| family.id == id);
        let Some(family) = family else { return Ok(()) };
        let (flag, what) = match index.of_qualifiers {
            true => (&mut family.qualifier_index, "qualifier index"),
            false => (&mut family.value_index, "index"),
        };
        if std::mem::replace(flag, true) {
            return Err(twice(format!("the {what} of '{}' is defined twice", index.family)));
        }
        Ok(())
    }

    /// The options of a family that belongs to `group`, defaults included.
    pub(super) fn effective(&self, own: &FamilyOptions, group: &str) -> FamilyOptions {
        let group = self.access_groups.iter().find(|g| g.name == group);
        let own = group.map_or_else(|| own.clone(), |g| own.or(&g.family_defaults));
        own.or(&self.options.family)
    }

    fn check_new_families(&self, definitions: &TableDefinitions) -> Result<()> {
        for (index, family) in definitions.families.iter().enumerate() {
            check_family_name(&family.name)?;
            family.options.check(&family.name)?;
            let earlier = &definitions.families[..index];
            let known = earlier.iter().any(|f| f.name == family.name);
            if known || self.family(&family.name).is_some() {
                return Err(twice(format!("column family '{}' is defined twice", family.name)));
            }
        }
        Ok(())
    }

    fn add_group(&mut self, group: &GroupDefinition) -> Result<()> {
        group.family_defaults.check(&group.name)?;
        check_group_name(&group.name)?;
        if self.group_mut(&group.name).is_none() {
            let defaults = group.family_defaults.clone();
            self.push_group(&group.name, group.options.clone(), defaults);
            return Ok(());
        }
        let plain = group.options == GroupOptions::default()
            && group.family_defaults == FamilyOptions::default();
        if plain && self.generation > 1 {
            return Ok(());
        }
        Err(twice(format!("access group '{}' is defined twice", group.name)))
    }

    fn push_group(&mut self, name: &str, options: GroupOptions, defaults: FamilyOptions) {
        let options = options.or(&self.options.group);
        let name = name.to_owned();
        self.access_groups.push(AccessGroup { name, options, family_defaults: defaults });
    }

    fn push_family(&mut self, family: &FamilyDefinition, group: &str) -> Result<()> {
        let id = FamilyId::try_from(self.families.len() + 1).map_err(|_| {
            Error::invalid(format!("a table has at most {FAMILIES_MAX} column families"))
                .with_sqlstate("54011")
                .with_hint("dropped families count too; use qualifiers for open sets of columns")
        })?;
        let options = self.effective(&family.options, group);
        self.families.push(ColumnFamily {
            id,
            name: family.name.clone(),
            access_group: group.to_owned(),
            deleted: false,
            value_index: false,
            qualifier_index: false,
            options,
        });
        Ok(())
    }
}

/// The access group of each new family, in the order of the families.
fn homes(definitions: &TableDefinitions) -> Result<Vec<&str>> {
    let mut homes = vec![None; definitions.families.len()];
    for group in &definitions.groups {
        for name in &group.families {
            let found = definitions.families.iter().position(|family| family.name == *name);
            let home = found.and_then(|at| homes.get_mut(at)).ok_or_else(|| {
                let text = format!("access group '{}' names '{name}'", group.name);
                Error::invalid(format!("{text}, which is not defined here"))
                    .with_sqlstate("42703")
                    .with_hint("define the column family in the same statement")
            })?;
            if home.replace(group.name.as_str()).is_some() {
                return Err(twice(format!("column family '{name}' is in two access groups")));
            }
        }
    }
    Ok(homes.into_iter().map(|home| home.unwrap_or(DEFAULT_GROUP)).collect())
}

fn twice(message: String) -> Error {
    Error::invalid(message).with_sqlstate("42701")
}

/// Refuses names that would not print back, and `:`, which ends the family in `family:qualifier`.
pub(super) fn check_family_name(name: &str) -> Result<()> {
    let bad = |c: char| c.is_control() || matches!(c, ':' | '\'' | '"' | '\\' | '!' | ',');
    if !name.is_empty() && !name.contains(bad) {
        return Ok(());
    }
    Err(Error::invalid(format!("'{}' cannot name a column family", name.escape_debug()))
        .with_sqlstate("42602")
        .with_hint("names have no colon, comma, quote, backslash, '!' or control character"))
}

fn check_group_name(name: &str) -> Result<()> {
    let bad = |c: char| c.is_control() || matches!(c, '\'' | '"' | '\\');
    if !name.is_empty() && !name.contains(bad) {
        return Ok(());
    }
    Err(Error::invalid(format!("'{}' cannot name an access group", name.escape_debug()))
        .with_sqlstate("42602"))
}
