//! `CREATE VIEW`, `ALTER VIEW`, `DROP VIEW`.
//!
//! As tables, views are made by superusers; one without an owner reads with their rights. What can be read through
//! a view is asked when it is read (`session::views`).

use std::collections::BTreeMap;

use arrow::datatypes::SchemaRef;
use datafusion::sql::sqlparser::ast::ObjectName;
use stoa_catalog::TableIdent;
use stoa_error::{Condition, Error, ErrorKind, Result};
use stoa_semantics::errors::from_datafusion;
use stoa_semantics::parameters;
use stoa_sql::{AlterViewAction, AlterViewStatement, CreateViewStatement, ViewHead, name_parts};
use stoa_table::{VIEW_COMMENT, VIEW_SECURITY_INVOKER, ViewChange, ViewSpec};

use crate::session::Session;
use crate::session::outcome::Completion;
use crate::statements::allowed;
use crate::statements::columns::{named, storable_schema};
use crate::tables::storable::same_type;
use crate::tables::view::{READS, Reads, StoredView};

/// How often a view is replaced anew that others change meanwhile.
const REPLACE_TRIES: usize = 10;

/// Makes a view, or replaces its definition.
pub(crate) async fn create(
    session: &Session,
    statement: &CreateViewStatement,
) -> Result<Completion> {
    let head = &statement.head;
    let ident = session.ident_to_create(&head.name, head.is_temporary).await?;
    let is_temporary = session.is_own_temporary(&ident.namespace);
    let done = Completion::of("CREATE VIEW");
    for _ in 0..REPLACE_TRIES {
        let old = match find(session, &ident).await {
            // That a table has the name is said when the view is made.
            Err(error) if error.is(Condition::WrongObjectType) && !head.or_replace => None,
            found => found?,
        };
        match &old {
            Some(_) if head.if_not_exists => {
                return Ok(done.with_notice(format!("view {ident} exists already, skipping")));
            }
            Some(old) if head.or_replace => session.caller.must_own(old)?,
            _ if is_temporary => {}
            _ => session.caller.must_be_superuser("create views")?,
        }
        let spec = spec_of(session, statement, &ident).await?;
        let warehouse = session.data.warehouse();
        let made = match &old {
            Some(old) if head.or_replace => {
                check_columns(old, &spec.schema)?;
                warehouse.replace_view(&old.view, &with_comment_of(old, spec)).await
            }
            _ => warehouse.create_view(&ident, &spec).await,
        };
        match made {
            Err(error) if error.kind() == ErrorKind::Conflict && head.or_replace => {}
            Err(error) if head.if_not_exists && error.is(Condition::DuplicateTable) => {
                return Ok(done.with_notice(format!("{error}, skipping")));
            }
            other => {
                session.created(&ident, other?.uuid()).await?;
                return Ok(done);
            }
        }
    }
    Err(Error::conflict(format!("view {ident} is changed all the time")).with_hint("try again"))
}

/// The view of this name; `None` where there is none.
async fn find(session: &Session, ident: &TableIdent) -> Result<Option<StoredView>> {
    match session.data.warehouse().view(ident).await {
        Ok(view) => StoredView::new(view).map(Some),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

async fn spec_of(
    session: &Session,
    statement: &CreateViewStatement,
    ident: &TableIdent,
) -> Result<ViewSpec> {
    let CreateViewStatement { head, query } = statement;
    let is_temporary = session.is_own_temporary(&ident.namespace);
    let with_names = session.with_temporary_names(&query.statement, &query.text)?;
    if with_names.is_some() && !is_temporary {
        return Err(Error::unsupported("a view that lasts cannot read temporary tables")
            .with_hint("write CREATE TEMP VIEW"));
    }
    let state = session.state();
    if stoa_pg_catalog::lists_names(&query.statement) {
        session.data.refresh().await?;
    }
    let defining = with_names.as_ref().unwrap_or(&query.statement);
    let plan = session.plan_defining(&state, defining, &head.columns).await?;
    let (plan, types) = parameters::resolve(plan, &[])?;
    if !types.is_empty() {
        return Err(Error::invalid("there is no parameter $1: a view has none")
            .with_sqlstate("42P02")
            .with_hint("write the value, or leave the condition to those who read the view"));
    }
    let reads = Reads::of(&plan)?;
    let expanded = session.expand_views(plan).await?;
    session.check_views(&expanded.views)?;
    if expanded.views.iter().any(|read| read.view.view.ident() == ident) {
        return Err(Error::invalid(format!("view {ident} would be defined by itself"))
            .with_sqlstate("42P17")
            .with_hint("read the tables that the view reads"));
    }
    allowed::check(&expanded.plan)?;
    let analyzed = stoa_semantics::analyzed(&state, &expanded.plan).map_err(from_datafusion)?;
    let schema = storable_schema(&named(analyzed.schema().as_arrow(), &head.columns)?)?;
    let mut properties = properties_of(head)?;
    properties.insert(READS.to_owned(), reads.to_property());
    if is_temporary {
        // It reads with no other rights than the session has.
        properties.insert(VIEW_SECURITY_INVOKER.to_owned(), true.to_string());
    }
    // Names of temporary tables mean nothing without their schema.
    let text = with_names.as_ref().map_or_else(|| query.text.clone(), ToString::to_string);
    let spec = ViewSpec::new(schema, text.as_str(), session.namespace());
    Ok(ViewSpec { properties, ..spec })
}

fn properties_of(head: &ViewHead) -> Result<BTreeMap<String, String>> {
    let mut properties = BTreeMap::new();
    for (name, value) in &head.options {
        let (name, value) = option_of(name, value)?;
        properties.insert(name.to_owned(), value);
    }
    if let Some(comment) = &head.comment {
        properties.insert(VIEW_COMMENT.to_owned(), comment.clone());
    }
    Ok(properties)
}

/// An option of a view as its property.
fn option_of<'a>(name: &'a str, value: &str) -> Result<(&'a str, String)> {
    match name {
        VIEW_SECURITY_INVOKER => {
            let is_set = crate::settings::as_boolean(value).ok_or_else(|| {
                Error::invalid(format!("invalid value for option {name}: \"{value}\""))
                    .with_sqlstate("22023")
                    .with_hint("write true or false")
            })?;
            Ok((name, is_set.to_string()))
        }
        "security_barrier" | "check_option" => {
            Err(Error::unsupported(format!("the option {name} of views is not supported")))
        }
        _ => Err(Error::invalid(format!("unrecognized option of views: \"{name}\""))
            .with_sqlstate("22023")
            .with_hint("the option is security_invoker")),
    }
}

fn with_comment_of(old: &StoredView, mut spec: ViewSpec) -> ViewSpec {
    if let Some(comment) = old.view.comment() {
        spec.properties.entry(VIEW_COMMENT.to_owned()).or_insert_with(|| comment.to_owned());
    }
    spec
}

/// Whether a view may get these columns: those that it has stay, others come after them, as in PostgreSQL.
fn check_columns(old: &StoredView, new: &SchemaRef) -> Result<()> {
    let refused = |what: String| {
        Err(Error::invalid(what)
            .with_sqlstate("42P16")
            .with_hint("DROP VIEW first; a replacement can only add columns at the end"))
    };
    for (at, before) in old.columns().fields().iter().enumerate() {
        let name = before.name();
        let Some(now) = new.fields().get(at) else {
            return refused(format!("column \"{name}\" cannot be dropped from the view"));
        };
        if now.name() != name {
            let now = now.name();
            return refused(format!("view column \"{name}\" cannot be renamed to \"{now}\""));
        }
        if !same_type(before.data_type(), now.data_type()) {
            return refused(format!("the type of view column \"{name}\" cannot be changed"));
        }
    }
    Ok(())
}

/// Drops views.
pub(crate) async fn drop(
    session: &Session,
    names: &[ObjectName],
    if_exists: bool,
) -> Result<Completion> {
    let mut completion = Completion::of("DROP VIEW");
    for name in names {
        let ident = session.table_ident(name)?;
        match remove(session, &ident).await {
            Err(error) if if_exists && error.kind() == ErrorKind::NotFound => {
                completion.notices.push(format!("{error}, skipping"));
            }
            dropped => {
                dropped?;
                session.dropped(&ident);
            }
        }
    }
    Ok(completion)
}

/// Drops one view, with its owner and grants.
pub(crate) async fn remove(session: &Session, ident: &TableIdent) -> Result<()> {
    let warehouse = session.data.warehouse();
    let view = match warehouse.view(ident).await {
        Err(error) if error.kind() == ErrorKind::Corrupt => {
            session.caller.must_be_superuser("drop views that cannot be read")?;
            return warehouse.drop_view(ident).await;
        }
        view => StoredView::new(view?)?,
    };
    session.caller.must_own(&view)?;
    warehouse.drop_only_view(&view.view).await?;
    session.gate.rights().catalog().forget_table(view.view.uuid()).await?;
    Ok(())
}

/// Changes a view, but not its query.
pub(crate) async fn alter(session: &Session, alter: &AlterViewStatement) -> Result<Completion> {
    let ident = session.table_ident(&alter.name)?;
    let completion = Completion::of("ALTER VIEW");
    let warehouse = session.data.warehouse();
    let view = match warehouse.view(&ident).await {
        Err(error) if alter.if_exists && error.kind() == ErrorKind::NotFound => {
            return Ok(completion.with_notice(format!("{error}, skipping")));
        }
        view => StoredView::new(view?)?,
    };
    session.caller.must_own(&view)?;
    match &alter.action {
        AlterViewAction::Rename(to) => {
            let mut target = session.table_ident(to)?;
            if name_parts(to)?.len() == 1 {
                target.namespace.clone_from(&ident.namespace);
            }
            rename(session, &view, &target).await?;
        }
        AlterViewAction::SetSchema(namespace) => {
            let target = TableIdent::new(namespace.as_str(), ident.name.as_str());
            rename(session, &view, &target).await?;
        }
        AlterViewAction::SetOwner(owner) => {
            session.caller.may_give_to(owner)?;
            let rights = session.gate.rights();
            rights.catalog().set_owner(view.view.uuid(), owner).await?;
            rights.refresh().await?;
        }
        AlterViewAction::Set(options) => {
            let mut changes = BTreeMap::new();
            for (name, value) in options {
                let (name, value) = option_of(name, value)?;
                changes.insert(name.to_owned(), Some(value));
            }
            warehouse.alter_view(&view.view, &ViewChange::Properties(changes)).await?;
        }
        AlterViewAction::Reset(names) => {
            let mut changes = BTreeMap::new();
            for name in names {
                let (name, _) = option_of(name, "false")?;
                changes.insert(name.to_owned(), None);
            }
            warehouse.alter_view(&view.view, &ViewChange::Properties(changes)).await?;
        }
    }
    Ok(completion)
}

async fn rename(session: &Session, view: &StoredView, target: &TableIdent) -> Result<()> {
    if target.namespace != view.view.ident().namespace {
        // Whoever has rights on that schema would have them on the view.
        session.caller.must_be_superuser("move views to another schema")?;
    }
    session.data.warehouse().rename_only_view(&view.view, target).await?;
    session.renamed(view.view.ident(), target);
    Ok(())
}
