//! Statements about resource plans, as Hive spells them: `CREATE RESOURCE PLAN`, `ALTER POOL`, `DROP TRIGGER` and others.

use datafusion_sql::sqlparser::parser::Parser;
use datafusion_sql::sqlparser::tokenizer::Token;
use stoa_workload::{
    Action, Mapping, MappingKind, PlanChange, PoolSettings, PoolTarget, SchedulingPolicy, Setting,
    Trigger,
};

use crate::lexer::{Lexer, Token as Lexeme};
use crate::show::ShowStatement;
use crate::statement::StatementKind;
use crate::{Parsed, normalise};

/// A statement, or why what it says is no setting.
type Read<T> = Parsed<std::result::Result<T, stoa_error::Error>>;

/// Whether a text is one of these statements.
pub(super) fn is_in(text: &str) -> bool {
    let first: Vec<String> = Lexer::new(text)
        .filter(Lexeme::is_significant)
        .take(5)
        .map(|token| token.text.to_ascii_uppercase())
        .collect();
    let words: Vec<&str> = first.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["CREATE" | "ALTER" | "DROP" | "REPLACE", "RESOURCE", "PLAN", ..]
        | ["REPLACE", "ACTIVE", "RESOURCE", "PLAN", ..]
        | ["CREATE" | "ALTER" | "DROP", "POOL", ..]
        | ["ENABLE" | "DISABLE", "WORKLOAD", ..]
        | ["SHOW", "RESOURCE", ..] => true,
        // PostgreSQL's have no name with a point: `CREATE TRIGGER name BEFORE …`.
        ["CREATE" | "ALTER" | "DROP", "TRIGGER", _, ".", ..] => true,
        ["CREATE" | "ALTER" | "DROP", "USER" | "GROUP" | "APPLICATION", "MAPPING", name, ..] => {
            name.starts_with('\'')
        }
        _ => false,
    }
}

/// Parses a statement of which [`is_in`] says that it is one.
pub(super) fn parse(parser: &mut Parser<'_>) -> Read<StatementKind> {
    let change = if take(parser, "REPLACE") {
        replace(parser)
    } else if take(parser, "SHOW") {
        return show(parser).map(|show| Ok(StatementKind::Show(show)));
    } else if take(parser, "ENABLE") {
        management(parser, PlanChange::EnableManagement)
    } else if take(parser, "DISABLE") {
        management(parser, PlanChange::DisableManagement)
    } else {
        let verb = verb(parser)?;
        if take(parser, "RESOURCE") {
            expect(parser, "PLAN")?;
            match verb {
                Verb::Create => create_plan(parser),
                Verb::Alter => return alter_plan(parser),
                Verb::Drop => drop_plan(parser),
            }
        } else if take(parser, "POOL") {
            return pool(parser, verb).map(|read| read.map(StatementKind::ResourcePlan));
        } else if take(parser, "TRIGGER") {
            return trigger(parser, verb).map(|read| read.map(StatementKind::ResourcePlan));
        } else {
            mapping(parser, verb)
        }
    };
    change.map(|change| Ok(StatementKind::ResourcePlan(change)))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Create,
    Alter,
    Drop,
}

fn verb(parser: &mut Parser<'_>) -> Parsed<Verb> {
    for (word, verb) in [("CREATE", Verb::Create), ("ALTER", Verb::Alter), ("DROP", Verb::Drop)] {
        if take(parser, word) {
            return Ok(verb);
        }
    }
    let found = parser.peek_token();
    parser.expected("CREATE, ALTER or DROP", found)
}

fn show(parser: &mut Parser<'_>) -> Parsed<ShowStatement> {
    expect(parser, "RESOURCE")?;
    if take(parser, "PLANS") {
        return Ok(ShowStatement::ResourcePlans);
    }
    expect(parser, "PLAN")?;
    name(parser).map(|name| ShowStatement::ResourcePlan { name })
}

fn management(parser: &mut Parser<'_>, change: PlanChange) -> Parsed<PlanChange> {
    expect(parser, "WORKLOAD")?;
    expect(parser, "MANAGEMENT")?;
    Ok(change)
}

fn replace(parser: &mut Parser<'_>) -> Parsed<PlanChange> {
    let is_active = take(parser, "ACTIVE");
    expect(parser, "RESOURCE")?;
    expect(parser, "PLAN")?;
    let plan = if is_active { None } else { Some(name(parser)?) };
    expect(parser, "WITH")?;
    Ok(PlanChange::ReplacePlan { plan, with: name(parser)? })
}

fn create_plan(parser: &mut Parser<'_>) -> Parsed<PlanChange> {
    let if_not_exists = take(parser, "IF");
    if if_not_exists {
        expect(parser, "NOT")?;
        expect(parser, "EXISTS")?;
    }
    let plan = name(parser)?;
    let like = if take(parser, "LIKE") { Some(name(parser)?) } else { None };
    let mut parallelism = None;
    if like.is_none() && take(parser, "WITH") {
        expect(parser, "QUERY_PARALLELISM")?;
        parallelism = Some(assigned_number(parser)?);
    }
    Ok(PlanChange::CreatePlan { plan, if_not_exists, like, parallelism })
}

fn drop_plan(parser: &mut Parser<'_>) -> Parsed<PlanChange> {
    let if_exists = take(parser, "IF");
    if if_exists {
        expect(parser, "EXISTS")?;
    }
    Ok(PlanChange::DropPlan { plan: name(parser)?, if_exists })
}

fn alter_plan(parser: &mut Parser<'_>) -> Read<StatementKind> {
    let plan = name(parser)?;
    let change = if take(parser, "VALIDATE") {
        let problems = ShowStatement::ResourcePlanProblems { name: plan };
        return Ok(Ok(StatementKind::Show(problems)));
    } else if take(parser, "DISABLE") {
        PlanChange::DisablePlan { plan }
    } else if take(parser, "RENAME") {
        expect(parser, "TO")?;
        PlanChange::RenamePlan { plan, to: name(parser)? }
    } else if take(parser, "SET") {
        plan_settings(parser, plan, true)?
    } else if take(parser, "UNSET") {
        plan_settings(parser, plan, false)?
    } else {
        enable_plan(parser, plan)?
    };
    Ok(Ok(StatementKind::ResourcePlan(change)))
}

/// `QUERY_PARALLELISM [= n], DEFAULT POOL [= path]`
fn plan_settings(parser: &mut Parser<'_>, plan: String, sets: bool) -> Parsed<PlanChange> {
    let (mut parallelism, mut default_pool) = (Setting::Keep, Setting::Keep);
    loop {
        if take(parser, "QUERY_PARALLELISM") {
            parallelism = match sets {
                true => Setting::Set(assigned_number(parser)?),
                false => Setting::Unset,
            };
        } else if take(parser, "DEFAULT") {
            expect(parser, "POOL")?;
            default_pool = match sets {
                true => {
                    parser.expect_token(&Token::Eq)?;
                    Setting::Set(path(parser)?)
                }
                false => Setting::Unset,
            };
        } else {
            let found = parser.peek_token();
            return parser.expected("QUERY_PARALLELISM or DEFAULT POOL", found);
        }
        if !parser.consume_token(&Token::Comma) {
            return Ok(PlanChange::AlterPlan { plan, parallelism, default_pool });
        }
    }
}

/// `[ENABLE] ACTIVATE [WITH REPLACE] [ENABLE]`
fn enable_plan(parser: &mut Parser<'_>, plan: String) -> Parsed<PlanChange> {
    let mut enable = take(parser, "ENABLE");
    let activate = take(parser, "ACTIVATE");
    let replace = activate && take(parser, "WITH");
    if replace {
        expect(parser, "REPLACE")?;
    }
    enable |= activate && take(parser, "ENABLE");
    if !enable && !activate {
        let found = parser.peek_token();
        let wanted = "ENABLE, ACTIVATE, DISABLE, VALIDATE, SET, UNSET or RENAME TO";
        return parser.expected(wanted, found);
    }
    Ok(PlanChange::EnablePlan { plan, enable, activate, replace })
}

fn pool(parser: &mut Parser<'_>, verb: Verb) -> Read<PlanChange> {
    let plan = name(parser)?;
    parser.expect_token(&Token::Period)?;
    let path = path(parser)?;
    let settings = match verb {
        Verb::Drop => return Ok(Ok(PlanChange::DropPool { plan, path })),
        Verb::Create => {
            expect(parser, "WITH")?;
            pool_settings(parser)?
        }
        Verb::Alter if take(parser, "SET") => pool_settings(parser)?,
        Verb::Alter if take(parser, "UNSET") => {
            expect(parser, "SCHEDULING_POLICY")?;
            Ok(PoolSettings { policy: Setting::Unset, ..PoolSettings::default() })
        }
        Verb::Alter => {
            let adds = take(parser, "ADD");
            if !adds && !take(parser, "DROP") {
                let found = parser.peek_token();
                let wanted = "SET, UNSET SCHEDULING_POLICY, ADD TRIGGER or DROP TRIGGER";
                return parser.expected(wanted, found);
            }
            expect(parser, "TRIGGER")?;
            let name = name(parser)?;
            return Ok(Ok(attached(adds, plan, name, PoolTarget::Pool(path))));
        }
    };
    Ok(settings.map(|settings| match verb {
        Verb::Create => PlanChange::CreatePool { plan, path, settings },
        Verb::Alter | Verb::Drop => PlanChange::AlterPool { plan, path, settings },
    }))
}

fn attached(adds: bool, plan: String, name: String, pool: PoolTarget) -> PlanChange {
    match adds {
        true => PlanChange::AddTrigger { plan, name, to: pool },
        false => PlanChange::RemoveTrigger { plan, name, from: pool },
    }
}

fn pool_settings(parser: &mut Parser<'_>) -> Read<PoolSettings> {
    let mut settings = PoolSettings::default();
    loop {
        if take(parser, "ALLOC_FRACTION") {
            parser.expect_token(&Token::Eq)?;
            settings.alloc_fraction = Some(number(parser, "a fraction")?);
        } else if take(parser, "QUERY_PARALLELISM") {
            settings.parallelism = Some(assigned_number(parser)?);
        } else if take(parser, "SCHEDULING_POLICY") {
            parser.expect_token(&Token::Eq)?;
            match SchedulingPolicy::parse(&parser.parse_literal_string()?) {
                Ok(policy) => settings.policy = Setting::Set(policy),
                Err(error) => return Ok(Err(error)),
            }
        } else if take(parser, "PATH") {
            parser.expect_token(&Token::Eq)?;
            settings.path = Some(path(parser)?);
        } else {
            let found = parser.peek_token();
            let wanted = "ALLOC_FRACTION, QUERY_PARALLELISM, SCHEDULING_POLICY or PATH";
            return parser.expected(wanted, found);
        }
        if !parser.consume_token(&Token::Comma) {
            return Ok(Ok(settings));
        }
    }
}

fn trigger(parser: &mut Parser<'_>, verb: Verb) -> Read<PlanChange> {
    let plan = name(parser)?;
    parser.expect_token(&Token::Period)?;
    let name = name(parser)?;
    if verb == Verb::Drop {
        return Ok(Ok(PlanChange::DropTrigger { plan, name }));
    }
    if verb == Verb::Alter {
        let adds = take(parser, "ADD");
        if adds || take(parser, "DROP") {
            expect(parser, if adds { "TO" } else { "FROM" })?;
            let pool = match take(parser, "UNMANAGED") {
                true => PoolTarget::Unmanaged,
                false => {
                    expect(parser, "POOL")?;
                    PoolTarget::Pool(path(parser)?)
                }
            };
            return Ok(Ok(attached(adds, plan, name, pool)));
        }
    }
    expect(parser, "WHEN")?;
    let counter = parser.parse_identifier()?.value;
    parser.expect_token(&Token::Gt)?;
    let token = parser.next_token();
    let (limit, is_text) = match token.token {
        Token::Number(number, _) => (number, false),
        Token::SingleQuotedString(text) => (text, true),
        _ => return parser.expected("a number, or a text such as '30 sec' or '10 GB'", token),
    };
    expect(parser, "DO")?;
    let action = match take(parser, "KILL") {
        true => Action::Kill,
        false => {
            if !take(parser, "MOVE") {
                let found = parser.peek_token();
                return parser.expected("KILL or MOVE TO", found);
            }
            expect(parser, "TO")?;
            Action::Move(path(parser)?)
        }
    };
    Ok(Trigger::new(&counter, &limit, is_text, action).map(|trigger| match verb {
        Verb::Create => PlanChange::CreateTrigger { plan, name, trigger },
        Verb::Alter | Verb::Drop => PlanChange::AlterTrigger { plan, name, trigger },
    }))
}

fn mapping(parser: &mut Parser<'_>, verb: Verb) -> Parsed<PlanChange> {
    let kinds = [
        ("USER", MappingKind::User),
        ("GROUP", MappingKind::Group),
        ("APPLICATION", MappingKind::Application),
    ];
    let Some((_, kind)) = kinds.into_iter().find(|(word, _)| take(parser, word)) else {
        let found = parser.peek_token();
        return parser.expected("USER, GROUP or APPLICATION", found);
    };
    expect(parser, "MAPPING")?;
    let name = parser.parse_literal_string()?;
    expect(parser, "IN")?;
    let plan = self::name(parser)?;
    if verb == Verb::Drop {
        return Ok(PlanChange::DropMapping { plan, kind, name });
    }
    let pool = match take(parser, "UNMANAGED") {
        true => None,
        false => {
            expect(parser, "TO")?;
            Some(path(parser)?)
        }
    };
    let mut order = 0;
    if take(parser, "WITH") {
        expect(parser, "ORDER")?;
        order = number(parser, "a whole number")?;
    }
    let mapping = Mapping { kind, name, pool, order };
    Ok(match verb {
        Verb::Create => PlanChange::CreateMapping { plan, mapping },
        Verb::Alter | Verb::Drop => PlanChange::AlterMapping { plan, mapping },
    })
}

fn take(parser: &mut Parser<'_>, word: &str) -> bool {
    crate::parse_word(parser, word)
}

fn expect(parser: &mut Parser<'_>, word: &str) -> Parsed<()> {
    if take(parser, word) {
        return Ok(());
    }
    let found = parser.peek_token();
    parser.expected(word, found)
}

fn name(parser: &mut Parser<'_>) -> Parsed<String> {
    parser.parse_identifier().map(|name| normalise(&name))
}

/// `name.name…`
fn path(parser: &mut Parser<'_>) -> Parsed<String> {
    let mut path = name(parser)?;
    while parser.consume_token(&Token::Period) {
        path.push('.');
        path.push_str(&name(parser)?);
    }
    Ok(path)
}

fn assigned_number(parser: &mut Parser<'_>) -> Parsed<u32> {
    parser.expect_token(&Token::Eq)?;
    number(parser, "a whole number")
}

fn number<T: std::str::FromStr>(parser: &mut Parser<'_>, wanted: &str) -> Parsed<T> {
    let token = parser.next_token();
    if let Token::Number(text, _) = &token.token
        && let Ok(number) = text.parse()
    {
        return Ok(number);
    }
    parser.expected(wanted, token)
}

#[cfg(test)]
mod tests;
