//! Which roles are members of which.

use std::collections::{BTreeMap, BTreeSet};

use stoa_error::{Error, Result};

/// `member` has what `role` has (SQL: `GRANT role TO member`).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Membership {
    /// The role that others are members of.
    pub role: String,
    /// The member of it.
    pub member: String,
}

impl Membership {
    /// `member` is a member of `role`.
    pub fn new(role: impl Into<String>, member: impl Into<String>) -> Self {
        Self { role: role.into(), member: member.into() }
    }
}

/// All memberships.
///
/// **Invariant:** no role is a member of itself, over however many others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memberships {
    /// Of each member the roles it is directly a member of.
    direct: BTreeMap<String, BTreeSet<String>>,
}

impl Memberships {
    /// Adds one; gives back whether it is new.
    ///
    /// # Errors
    /// `Invalid` (0LP01, as PostgreSQL) where `role` would become a member of itself.
    pub fn add(&mut self, new: Membership) -> Result<bool> {
        let Membership { role, member } = new;
        if self.roles_of(&role).contains(member.as_str()) {
            return Err(Error::invalid(format!(
                "role \"{role}\" is a member of role \"{member}\""
            ))
            .with_sqlstate("0LP01")
            .with_detail(format!("\"{member}\" would become a member of itself"))
            .with_hint(format!("first take \"{member}\" away from \"{role}\" with REVOKE")));
        }
        Ok(self.direct.entry(member).or_default().insert(role))
    }

    /// `role` and all roles that it is a member of, directly or over others.
    pub fn roles_of<'a>(&'a self, role: &'a str) -> BTreeSet<&'a str> {
        let mut found = BTreeSet::from([role]);
        let mut open = vec![role];
        while let Some(member) = open.pop() {
            let above = self.direct.get(member).into_iter().flatten().map(String::as_str);
            open.extend(above.filter(|role| found.insert(role)));
        }
        found
    }

    /// All of them, by member, then role.
    pub fn iter(&self) -> impl Iterator<Item = Membership> {
        let of_member = |(member, roles)| {
            let roles: &BTreeSet<String> = roles;
            let member: &String = member;
            roles.iter().map(move |role| Membership::new(role, member))
        };
        self.direct.iter().flat_map(of_member)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(pairs: &[(&str, &str)]) -> Result<Memberships> {
        let mut memberships = Memberships::default();
        for (role, member) in pairs {
            memberships.add(Membership::new(*role, *member))?;
        }
        Ok(memberships)
    }

    #[test]
    fn roles_are_found_over_others() {
        let memberships =
            all(&[("staff", "ann"), ("company", "staff"), ("company", "bob"), ("night", "ann")])
                .unwrap();
        let roles = memberships.roles_of("ann");
        assert_eq!(roles, BTreeSet::from(["ann", "company", "night", "staff"]));
        assert_eq!(memberships.roles_of("company"), BTreeSet::from(["company"]));
        assert_eq!(memberships.roles_of("nobody"), BTreeSet::from(["nobody"]));
    }

    #[test]
    fn cycles_are_refused_and_change_nothing() {
        for pairs in [
            &[("a", "a")][..],
            &[("a", "b"), ("b", "a")][..],
            &[("a", "b"), ("b", "c"), ("x", "c"), ("c", "a")][..],
        ] {
            let error = all(pairs).unwrap_err();
            assert_eq!(error.sqlstate(), "0LP01", "{pairs:?}");
        }
        let mut memberships = all(&[("a", "b")]).unwrap();
        let before = memberships.clone();
        let error = memberships.add(Membership::new("b", "a")).unwrap_err();
        assert_eq!(error.message(), "role \"b\" is a member of role \"a\"");
        assert_eq!(memberships, before);
    }

    #[test]
    fn a_second_path_is_no_cycle_and_a_repetition_nothing_new() {
        let mut memberships = all(&[("top", "l"), ("top", "r"), ("l", "x"), ("r", "x")]).unwrap();
        assert!(!memberships.add(Membership::new("top", "l")).unwrap());
        assert_eq!(memberships.iter().count(), 4);
    }
}
