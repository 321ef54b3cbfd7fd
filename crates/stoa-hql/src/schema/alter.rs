//! Changes of a schema: ALTER TABLE.

use stoa_error::{Condition, Error, Result};

use super::build::check_family_name;
use super::{FamilyOptions, GroupDefinition, IndexDefinition, TableDefinitions, TableSchema};

/// One clause of ALTER TABLE.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterAction {
    /// New families, groups, indices.
    Add(TableDefinitions),
    /// New options for families and groups that exist, new indices.
    Modify(TableDefinitions),
    /// Families whose cells are no longer seen.
    DropFamilies(Vec<String>),
    /// Indices over values of these families.
    DropValueIndex(Vec<String>),
    /// Indices over qualifiers of these families.
    DropQualifierIndex(Vec<String>),
    /// A family's new name.
    RenameFamily {
        /// The name it has.
        from: String,
        /// The name it gets.
        to: String,
    },
}

impl TableSchema {
    /// The schema after these changes, one after the other; its generation is one higher.
    ///
    /// # Errors
    /// [`Invalid`](stoa_error::ErrorKind::Invalid) or
    /// [`NotFound`](stoa_error::ErrorKind::NotFound) for the first change that cannot be made;
    /// then none is.
    pub fn alter(&self, actions: &[AlterAction]) -> Result<TableSchema> {
        let mut schema = self.clone();
        schema.generation += 1;
        for action in actions {
            schema.apply(action)?;
        }
        Ok(schema)
    }

    fn apply(&mut self, action: &AlterAction) -> Result<()> {
        match action {
            AlterAction::Add(definitions) => self.add(definitions),
            AlterAction::Modify(definitions) => self.modify(definitions),
            AlterAction::DropFamilies(names) => {
                names.iter().try_for_each(|name| self.drop_family(name))
            }
            AlterAction::DropValueIndex(names) => {
                names.iter().try_for_each(|name| self.drop_index(name, false))
            }
            AlterAction::DropQualifierIndex(names) => {
                names.iter().try_for_each(|name| self.drop_index(name, true))
            }
            AlterAction::RenameFamily { from, to } => self.rename_family(from, to),
        }
    }

    fn modify(&mut self, definitions: &TableDefinitions) -> Result<()> {
        for group in &definitions.groups {
            self.modify_group(group)?;
        }
        for family in &definitions.families {
            self.modify_family(&family.name, &family.options)?;
        }
        definitions.indices.iter().try_for_each(|index| self.ensure_index(index))
    }

    fn modify_family(&mut self, name: &str, options: &FamilyOptions) -> Result<()> {
        options.check(name)?;
        let known = self.require_family(name)?.clone();
        let fixed = |what: &str| {
            Error::invalid(format!("{what} of '{name}' cannot be changed"))
                .with_sqlstate("42P16")
                .with_hint("cells are read by it since they were written; add another family")
        };
        let is_counter = known.options.is_counter();
        if options.counter.is_some_and(|counter| counter != is_counter) {
            return Err(fixed("COUNTER"));
        }
        let oldest_first = FamilyOptions { time_order: options.time_order, ..Default::default() };
        let order_differs = oldest_first.is_oldest_first() != known.options.is_oldest_first();
        if options.time_order.is_some() && order_differs {
            return Err(fixed("TIME_ORDER"));
        }
        let own = FamilyOptions {
            counter: known.options.counter,
            time_order: known.options.time_order,
            ..options.clone()
        };
        own.check(name)?;
        let options = self.effective(&own, &known.access_group);
        if let Some(family) = self.families.iter_mut().find(|family| family.id == known.id) {
            family.options = options;
        }
        Ok(())
    }

    fn modify_group(&mut self, group: &GroupDefinition) -> Result<()> {
        let options = group.options.or(&self.options.group);
        let homes: Vec<&str> =
            self.living().filter(|f| f.access_group == group.name).map(|f| &*f.name).collect();
        if let Some(stranger) = group.families.iter().find(|f| !homes.contains(&f.as_str())) {
            let text = format!("'{stranger}' is not in access group '{}'", group.name);
            return Err(Error::invalid(text).with_hint("families stay in their access group"));
        }
        let known = self.group_mut(&group.name).ok_or_else(|| {
            Error::not_found(format!("no access group '{}'", group.name))
                .with_hint("ADD (ACCESS GROUP …) makes one")
        })?;
        known.options = options;
        known.family_defaults = group.family_defaults.clone();
        Ok(())
    }

    fn ensure_index(&mut self, index: &IndexDefinition) -> Result<()> {
        let family = self.require_family(&index.family)?;
        let exists = if index.of_qualifiers { family.qualifier_index } else { family.value_index };
        if exists { Ok(()) } else { self.add_index(index) }
    }

    fn drop_family(&mut self, name: &str) -> Result<()> {
        let id = self.require_family(name)?.id;
        if let Some(family) = self.families.iter_mut().find(|family| family.id == id) {
            family.deleted = true;
            family.name = format!("!{id}");
            family.value_index = false;
            family.qualifier_index = false;
        }
        Ok(())
    }

    fn drop_index(&mut self, name: &str, of_qualifiers: bool) -> Result<()> {
        let id = self.require_family(name)?.id;
        let family = self.families.iter_mut().find(|family| family.id == id);
        let Some(family) = family else { return Ok(()) };
        let (flag, what) = match of_qualifiers {
            true => (&mut family.qualifier_index, "qualifier index"),
            false => (&mut family.value_index, "index"),
        };
        if !std::mem::replace(flag, false) {
            return Err(Error::not_found(format!("'{name}' has no {what}"))
                .with_condition(Condition::UndefinedObject));
        }
        Ok(())
    }

    fn rename_family(&mut self, from: &str, to: &str) -> Result<()> {
        check_family_name(to)?;
        let id = self.require_family(from)?.id;
        if self.family(to).is_some() {
            return Err(Error::already_exists(format!("column family '{to}' exists"))
                .with_sqlstate("42701"));
        }
        if let Some(family) = self.families.iter_mut().find(|family| family.id == id) {
            family.name = to.to_owned();
        }
        Ok(())
    }
}
