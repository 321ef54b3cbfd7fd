//! Roles and grants.

use crate::figure::Figure;
use crate::group::Group;
use crate::seen::Shape;

/// One role.
#[derive(Clone, Debug, Default)]
pub struct Role {
    /// Its name.
    pub role: String,
    /// Whether it may log in.
    pub login: bool,
    /// Whether it may do everything.
    pub superuser: bool,
    /// Whether it has a password.
    pub password: bool,
    /// Roles that it is a member of.
    pub member_of: Vec<String>,
}

/// One grant, or an owner.
#[derive(Clone, Debug, Default)]
pub struct Grant {
    /// Who may.
    pub grantee: String,
    /// What; `OWNER` for owners.
    pub privilege: &'static str,
    /// In which namespace.
    pub namespace: Option<String>,
    /// With which table; `None` for all of the namespace.
    pub table: Option<String>,
    /// With which of its columns; `None` for all.
    pub columns: Option<Vec<String>>,
}

const ROLE_FIGURES: &[Figure<Role>] = &[
    Figure::<Role>::key("role", "Name of the role.", |s| &s.role),
    Figure::<Role>::flag("login", "Whether it may log in.", |s| s.login),
    Figure::<Role>::flag("superuser", "Whether it may do everything.", |s| s.superuser),
    Figure::<Role>::flag("password", "Whether it has a password.", |s| s.password),
    Figure::<Role>::maybe_texts("member_of", "Roles that it is a member of.", |s| {
        Some(&s.member_of)
    }),
];

const GRANT_FIGURES: &[Figure<Grant>] = &[
    Figure::<Grant>::key("grantee", "Who may.", |s| &s.grantee),
    Figure::<Grant>::text("privilege", "What; OWNER for owners.", |s| s.privilege),
    Figure::<Grant>::maybe_text("namespace", "In which namespace.", |s| s.namespace.as_deref()),
    Figure::<Grant>::maybe_text("table", "With which table; null for all of the namespace.", |s| {
        s.table.as_deref()
    }),
    Figure::<Grant>::maybe_texts("columns", "With which of its columns; null for all.", |s| {
        s.columns.as_deref()
    }),
];

/// `system.roles`.
pub static ROLES: Group<Role> =
    Group::new("roles", "Role", "Roles and what they are members of.", Shape::Many, ROLE_FIGURES)
        .table()
        .for_everyone();

/// `system.grants`.
pub static GRANTS: Group<Grant> = Group::new(
    "grants",
    "Grant",
    "Grants and owners of tables. A role sees its own grants, and all on tables that it may read \
     something of.",
    Shape::Many,
    GRANT_FIGURES,
)
.table()
.for_granted();
