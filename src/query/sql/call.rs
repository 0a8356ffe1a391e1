//! Functions of a statement, in the forms that SQL has for them.

#![expect(clippy::wildcard_enum_match_arm, reason = "the tree has all of SQL, most is refused")]

use sqlparser::ast::Expr;
use sqlparser::ast::Function as Call;
use sqlparser::ast::FunctionArg;
use sqlparser::ast::FunctionArgExpr;
use sqlparser::ast::FunctionArguments;
use sqlparser::ast::TrimWhereField;
use sqlparser::ast::Value as Literal;

use crate::query::eval::Expression;
use crate::query::eval::aggregate::Kind;
use crate::query::eval::function::Ends;
use crate::query::eval::function::Function;
use crate::query::request::Fault;
use crate::query::sql::compile::Compiler;
use crate::query::sql::compile::refused;
use crate::query::sql::quote::cut;
use crate::query::sql::wrong;
use crate::query::trouble::INVALID_ARGUMENT;
use crate::query::value::timestamp::Part;

/// The smallest part that `sys.split` makes; a documented limit.
const SPLIT_MIN: u64 = 10 * 1024 * 1024;

impl Compiler {
    /// Functions with a grammar of their own, and all others.
    pub(crate) fn called(&mut self, expr: Expr) -> Result<Expression, Fault> {
        expression(self, expr)
    }

    /// The size that `sys.split` has, if it is this call.
    pub(crate) fn split_size(call: &Call) -> Result<Option<u64>, Fault> {
        split_size(call)
    }
}

fn expression(compiler: &mut Compiler, expr: Expr) -> Result<Expression, Fault> {
    match expr {
        Expr::Substring { expr, substring_from: Some(from), substring_for, .. } => {
            let mut arguments = vec![*expr, *from];
            arguments.extend(substring_for.map(|count| *count));
            Ok(Expression::Call(Function::Substring, compiler.expressions(arguments)?))
        }
        Expr::Trim { trim_where, trim_what, expr, trim_characters: None } => {
            let ends = match trim_where {
                None | Some(TrimWhereField::Both) => Ends::Both,
                Some(TrimWhereField::Leading) => Ends::Leading,
                Some(TrimWhereField::Trailing) => Ends::Trailing,
            };
            let mut arguments = vec![*expr];
            arguments.extend(trim_what.map(|what| *what));
            Ok(Expression::Call(Function::Trim(ends), compiler.expressions(arguments)?))
        }
        Expr::Extract { field, expr, .. } => {
            let part = part(&field.to_string())?;
            Ok(Expression::Call(Function::Extract(part), vec![compiler.expression(*expr)?]))
        }
        Expr::Function(call) => function(compiler, call),
        other => Err(refused(&other)),
    }
}

fn part(name: &str) -> Result<Part, Fault> {
    Part::named(name).ok_or_else(|| wrong(format!("{} is not a part of a date.", cut(name))))
}

/// A part of a date, in quotes as documented, or without.
fn part_of(expr: &Expr) -> Result<Part, Fault> {
    let name = match expr {
        Expr::Identifier(name) => Some(name.value.clone()),
        Expr::Value(value) => match &value.value {
            Literal::SingleQuotedString(text) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    let part = part(&name.ok_or_else(|| refused(expr))?)?;
    match part {
        Part::TimezoneHour | Part::TimezoneMinute => Err(wrong("A time zone is no time.")),
        part => Ok(part),
    }
}

/// The call without its arguments, which may be long and deep.
fn refused_call(name: &str) -> Fault {
    refused(&format!("{}(...) in this form", cut(name)))
}

/// The arguments of a call that has nothing but them. `*` is `None`. They are moved, since to clone
/// a long chain takes as much of the stack as it is long.
fn arguments(call: Call) -> Result<Vec<Option<Expr>>, Fault> {
    let name = call.name.to_string();
    let refused = || refused_call(&name);
    let is_plain = matches!(call.parameters, FunctionArguments::None)
        && call.filter.is_none()
        && call.within_group.is_empty()
        && call.over.is_none()
        && call.null_treatment.is_none();
    let list = match call.args {
        FunctionArguments::List(list) if is_plain => list,
        FunctionArguments::None if is_plain => return Ok(Vec::new()),
        _ => return Err(refused()),
    };
    if list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return Err(refused());
    }
    let one = |argument: FunctionArg| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Ok(Some(expr)),
        FunctionArg::Unnamed(FunctionArgExpr::Wildcard) => Ok(None),
        _ => Err(refused()),
    };
    list.args.into_iter().map(one).collect()
}

/// The only argument of `sys.split`, if it is a number.
fn digits(call: &Call) -> Option<&str> {
    let FunctionArguments::List(list) = &call.args else { return None };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(value)))] = list.args.as_slice()
    else {
        return None;
    };
    let is_plain = matches!(call.parameters, FunctionArguments::None)
        && call.filter.is_none()
        && call.within_group.is_empty()
        && call.over.is_none()
        && call.null_treatment.is_none()
        && list.duplicate_treatment.is_none()
        && list.clauses.is_empty();
    match &value.value {
        Literal::Number(digits, _) if is_plain => Some(digits),
        _ => None,
    }
}

fn split_size(call: &Call) -> Result<Option<u64>, Fault> {
    if !call.name.to_string().eq_ignore_ascii_case("sys.split") {
        return Ok(None);
    }
    let wrong = || {
        let text = format!("sys.split takes one number of bytes, at least {SPLIT_MIN}.");
        Fault::fatal(INVALID_ARGUMENT, text, 0)
    };
    let size = digits(call).and_then(|digits| digits.parse().ok());
    size.filter(|size| *size >= SPLIT_MIN).map(Some).ok_or_else(wrong)
}

fn function(compiler: &mut Compiler, call: Call) -> Result<Expression, Fault> {
    let name = call.name.to_string();
    let mut arguments = arguments(call)?;
    if let Some(kind) = Kind::named(&name) {
        return match (kind, arguments.as_mut_slice()) {
            (Kind::Count, [None]) => compiler.aggregate(kind, None),
            (_, [Some(_)]) => compiler.aggregate(kind, arguments.remove(0)),
            _ => Err(wrong(format!("{name} takes one expression."))),
        };
    }
    let Some(mut arguments) = arguments.into_iter().collect::<Option<Vec<Expr>>>() else {
        return Err(refused_call(&name));
    };
    let dated = |name: &str| name.eq_ignore_ascii_case("DATE_ADD");
    if dated(&name) || name.eq_ignore_ascii_case("DATE_DIFF") {
        if arguments.len() != 3 {
            return Err(wrong(format!("{name} takes a part of a date and two more arguments.")));
        }
        let part = part_of(&arguments.remove(0))?;
        let function =
            if dated(&name) { Function::DateAdd(part) } else { Function::DateDiff(part) };
        return Ok(Expression::Call(function, compiler.expressions(arguments)?));
    }
    let Some((function, count)) = Function::named(&name) else {
        return Err(wrong(format!("There is no function {}.", cut(&name))));
    };
    if !count.contains(&arguments.len()) {
        return Err(wrong(format!("{name} does not take {} arguments.", arguments.len())));
    }
    Ok(Expression::Call(function, compiler.expressions(arguments)?))
}
