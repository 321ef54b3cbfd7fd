//! Statements about roles and grants.

use std::collections::BTreeSet;

use stoa_access::{Grant, Grantee, Object, Privilege, Role, ScramSecret, unknown_role};
use stoa_catalog::RoleChange;
use stoa_env::random;
use stoa_error::{Condition, Error, ErrorKind, Result};

use crate::access::{Caller, Relation, field_id};
use crate::session::Session;
use crate::session::outcome::Completion;
use crate::tables::view::StoredView;
use stoa_sql::{
    ColumnPrivilege, GrantObjects, GrantStatement, Password, RoleOptions, RoleStatement, name_parts,
};

/// Runs a statement; what it changed holds for the next one.
///
/// # Errors
/// 42501 where the caller may not, and what the catalog finds: no such role (42704), role that is
/// there (42710), role that is needed (2BP01), members in a circle (0LP01).
pub(crate) async fn run(session: &Session, statement: &RoleStatement) -> Result<Completion> {
    let (caller, rights) = (&session.caller, session.gate.rights());
    let catalog = rights.catalog();
    let mut completion = Completion::of(statement.tag());
    match statement {
        RoleStatement::Create { name, options } => {
            caller.must_be_superuser("create roles")?;
            let change = change_of(options).await?;
            let role = Role {
                can_login: change.can_login.unwrap_or_default(),
                is_superuser: change.is_superuser.unwrap_or_default(),
                secret: change.secret.flatten(),
                ..Role::new(name)
            };
            catalog.create_role(&role).await?;
        }
        RoleStatement::Alter { name, options } => {
            if !only_own_password(caller, name, options) {
                caller.must_be_superuser("alter other roles")?;
            }
            catalog.alter_role(name, &change_of(options).await?).await?;
        }
        RoleStatement::Drop { names, if_exists } => {
            caller.must_be_superuser("drop roles")?;
            for name in names {
                match catalog.drop_role(name).await {
                    Err(error) if *if_exists && error.kind() == ErrorKind::NotFound => {
                        completion.notices.push(format!("{error}, skipping"));
                    }
                    dropped => dropped?,
                }
            }
        }
        RoleStatement::GrantRole { roles, members } => {
            caller.must_be_superuser("grant roles")?;
            for (role, member) in pairs(roles, members) {
                catalog.grant_role(role, member).await?;
            }
        }
        RoleStatement::RevokeRole { roles, members } => {
            caller.must_be_superuser("revoke roles")?;
            for (role, member) in pairs(roles, members) {
                catalog.revoke_role(role, member).await?;
            }
        }
        RoleStatement::Activate(role) => {
            if let Some(role) = role {
                must_have(caller, role).await?;
            }
            return Ok(completion);
        }
        RoleStatement::Grant(grant) => {
            let grants = grants_of(session, grant).await?;
            catalog.grant(&grants).await?;
        }
        RoleStatement::Revoke(grant) => {
            let grants = grants_of(session, grant).await?;
            if catalog.revoke(&grants).await? == 0 {
                completion.notices.push("nothing was granted that could be revoked".to_owned());
            }
        }
    }
    rights.refresh().await?;
    Ok(completion)
}

/// Whether the caller is a member of a role; `admin` is what superusers are.
async fn must_have(caller: &Caller, role: &str) -> Result<()> {
    const ADMIN: &str = "admin";
    const PUBLIC: &str = "public";
    let policy = caller.policy_now().await?;
    let has_all = caller.may_everything();
    if policy.role(role).is_none() && ![ADMIN, PUBLIC].contains(&role) {
        return Err(unknown_role(role, policy.roles().map(|known| known.name.as_str())));
    }
    if has_all || role == PUBLIC || policy.memberships().roles_of(caller.role()).contains(role) {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Forbidden,
        format!("{} doesn't belong to role {role}", caller.role()),
    )
    .with_sqlstate("42501")
    .with_hint("SHOW CURRENT ROLES lists the roles of the user"))
}

fn pairs<'a>(
    roles: &'a [String],
    members: &'a [String],
) -> impl Iterator<Item = (&'a str, &'a str)> {
    roles.iter().flat_map(|role| members.iter().map(|member| (role.as_str(), member.as_str())))
}

fn only_own_password(caller: &Caller, name: &str, options: &RoleOptions) -> bool {
    name == caller.role() && options.can_login.is_none() && options.is_superuser.is_none()
}

async fn change_of(options: &RoleOptions) -> Result<RoleChange> {
    let secret = match &options.password {
        None => None,
        Some(Password::None) => Some(None),
        Some(Password::Text(text)) => Some(Some(secret_of(text.clone()).await?)),
    };
    let RoleOptions { can_login, is_superuser, .. } = *options;
    Ok(RoleChange { can_login, is_superuser, secret })
}

/// The secret of a password; one that is a secret already is taken as it is, as PostgreSQL does.
async fn secret_of(password: String) -> Result<ScramSecret> {
    if ScramSecret::is_meant_by(&password) {
        let secret: ScramSecret = password.parse()?;
        secret.check_iterations()?;
        return Ok(secret);
    }
    if password.is_empty() || password.contains('\0') {
        return Err(
            Error::invalid("the password is empty or has a zero in it").with_sqlstate("22023")
        );
    }
    let salt = random::bytes::<{ ScramSecret::SALT_BYTES }>();
    let compute = move || ScramSecret::from_password(&password, &salt, ScramSecret::ITERATIONS);
    let computed = stoa_env::task::spawn_blocking(compute).await;
    computed.map_err(|e| Error::internal("the password was not hashed").with_source(e))
}

/// What a statement grants or revokes, one by one.
async fn grants_of(session: &Session, statement: &GrantStatement) -> Result<Vec<Grant>> {
    let mut grants = Vec::new();
    match &statement.objects {
        GrantObjects::Namespaces(names) => {
            session.caller.must_be_superuser("grant on schemas")?;
            for name in names {
                let namespace = name_parts(name)?.pop().unwrap_or_default();
                let known = session.data.warehouse().namespaces().await?;
                if !known.contains(&namespace) {
                    let message = format!("schema \"{namespace}\" does not exist");
                    return Err(Error::not_found(message).with_sqlstate("3F000"));
                }
                for (privilege, grantee) in each(statement) {
                    if privilege.columns.is_some() {
                        return Err(Error::invalid("a schema has no columns")
                            .with_sqlstate("0LP01")
                            .with_hint("grant columns on a table"));
                    }
                    let object = Object::Namespace(namespace.clone());
                    grants.push(Grant::new(grantee, privilege.privilege, object));
                }
            }
        }
        GrantObjects::Tables(names) => {
            for name in names {
                let ident = session.table_ident(name)?;
                let warehouse = session.data.warehouse();
                match warehouse.table(&ident).await {
                    Err(error) if error.is(Condition::WrongObjectType) => {
                        let view = StoredView::new(warehouse.view(&ident).await?)?;
                        grants.extend(grants_on(session, &view, statement)?);
                    }
                    table => grants.extend(grants_on(session, &table?, statement)?),
                }
            }
        }
    }
    Ok(grants)
}

fn each(statement: &GrantStatement) -> impl Iterator<Item = (&ColumnPrivilege, Grantee)> {
    let privileges = statement.privileges.iter();
    privileges.flat_map(|one| statement.grantees.iter().map(move |to| (one, to.clone())))
}

fn grants_on(
    session: &Session,
    relation: &impl Relation,
    statement: &GrantStatement,
) -> Result<Vec<Grant>> {
    session.caller.must_own(relation)?;
    each(statement).map(|(privilege, grantee)| on_relation(relation, privilege, grantee)).collect()
}

fn on_relation<R: Relation>(
    table: &R,
    privilege: &ColumnPrivilege,
    grantee: Grantee,
) -> Result<Grant> {
    let grant = Grant::new(grantee, privilege.privilege, Object::Table(table.uuid()));
    let Some(names) = &privilege.columns else { return Ok(grant) };
    if privilege.privilege != Privilege::Select {
        let message = format!("{} cannot be granted on single columns", privilege.privilege);
        return Err(Error::unsupported(message).with_hint("only SELECT takes columns"));
    }
    let schema = table.schema();
    let mut columns = BTreeSet::new();
    for name in names {
        let field = schema.fields().iter().find(|field| field.name() == name);
        let id = field.and_then(|field| field_id(field)).ok_or_else(|| {
            let message =
                format!("column \"{name}\" of {} {} does not exist", R::KIND, table.ident());
            Error::not_found(message).with_sqlstate("42703")
        })?;
        columns.insert(id);
    }
    Ok(grant.on_columns(columns))
}
