//! From the tree of `sqlparser` to expressions. Anything outside of the language is refused.

#![expect(clippy::wildcard_enum_match_arm, reason = "the tree has all of SQL, most is refused")]

use sqlparser::ast::AccessExpr;
use sqlparser::ast::BinaryOperator;
use sqlparser::ast::CaseWhen;
use sqlparser::ast::CastKind;
use sqlparser::ast::Expr;
use sqlparser::ast::Ident;
use sqlparser::ast::InTarget;
use sqlparser::ast::SelectItem;
use sqlparser::ast::Subscript;
use sqlparser::ast::UnaryOperator;
use sqlparser::ast::Value as Literal;

use crate::query::eval::Case;
use crate::query::eval::Comparison;
use crate::query::eval::Expression;
use crate::query::eval::Like;
use crate::query::eval::List;
use crate::query::eval::aggregate::Aggregate;
use crate::query::eval::like::Pattern;
use crate::query::request::Fault;
use crate::query::sql::Item;
use crate::query::sql::Projection;
use crate::query::sql::Statement;
use crate::query::sql::column::Access;
use crate::query::sql::column::Column;
use crate::query::sql::quote::cut;
use crate::query::sql::statement;
use crate::query::sql::wrong;
use crate::query::trouble::INVALID_COLUMN_ORDINAL;
use crate::query::value::Number;
use crate::query::value::Value;
use crate::query::value::cast::Type;
use crate::query::value::number::Arithmetic;

/// Columns that a statement may select one by one; a documented limit.
const ITEMS_MAX: usize = 49;
/// Expressions within each other.
const DEPTH_MAX: usize = 64;
/// Columns to which a statement may refer at all.
const COLUMNS_MAX: usize = 1024;
/// Aggregates of a statement.
const AGGREGATES_MAX: usize = 64;
/// Expressions of a statement, each item of a list counted: each takes some hundred bytes.
const EXPRESSIONS_MAX: usize = 100_000;

/// Collects what expressions refer to.
#[derive(Debug, Default)]
pub(crate) struct Compiler {
    alias: Option<String>,
    columns: Vec<Column>,
    aggregates: Vec<Aggregate>,
    /// Outside of these no aggregate may stand.
    is_in_projection: bool,
    is_in_aggregate: bool,
    /// A column stands outside of aggregates.
    has_plain_column: bool,
    /// Expressions around the one that is compiled.
    depth: usize,
    /// Expressions so far.
    count: usize,
}

/// Parses and checks a statement.
pub(crate) fn statement(text: &str) -> Result<Statement, Fault> {
    let parts = statement::parse(text)?;
    let mut compiler = Compiler { alias: parts.alias, ..Compiler::default() };
    compiler.is_in_projection = true;
    let projection = compiler.projection(parts.items)?;
    compiler.is_in_projection = false;
    if !compiler.aggregates.is_empty() && compiler.has_plain_column {
        return Err(wrong("Columns and aggregates cannot be selected together."));
    }
    let filter = parts.filter.map(|filter| compiler.expression(filter)).transpose()?;
    let Compiler { columns, aggregates, .. } = compiler;
    let (from, limit) = (parts.from, parts.limit);
    Ok(Statement { projection, from, filter, limit, columns, aggregates })
}

/// The fault for a construct outside of the language, in its own words.
pub(crate) fn refused(what: &dyn std::fmt::Display) -> Fault {
    let text: String = what.to_string().chars().take(80).collect();
    wrong(format!("This is not supported: {text}"))
}

/// An operator between two numbers.
fn arithmetic(operator: &BinaryOperator) -> Option<Arithmetic> {
    Some(match operator {
        BinaryOperator::Plus => Arithmetic::Add,
        BinaryOperator::Minus => Arithmetic::Subtract,
        BinaryOperator::Multiply => Arithmetic::Multiply,
        BinaryOperator::Divide => Arithmetic::Divide,
        BinaryOperator::Modulo => Arithmetic::Remainder,
        BinaryOperator::StringConcat => Arithmetic::Concatenate,
        _ => return None,
    })
}

fn comparison(operator: &BinaryOperator) -> Option<Comparison> {
    Some(match operator {
        BinaryOperator::Eq => Comparison::Equal,
        BinaryOperator::NotEq => Comparison::NotEqual,
        BinaryOperator::Lt => Comparison::Less,
        BinaryOperator::LtEq => Comparison::LessOrEqual,
        BinaryOperator::Gt => Comparison::Greater,
        BinaryOperator::GtEq => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

fn literal(value: Literal) -> Result<Value<'static>, Fault> {
    Ok(match value {
        Literal::Number(digits, _) => match crate::query::value::number_of_text(&digits) {
            Ok(number @ (Number::Int(_) | Number::Float(_))) => number.value(),
            _ => return Err(wrong(format!("{} is not a number.", cut(&digits)))),
        },
        Literal::SingleQuotedString(text) => Value::Text(text.into()),
        Literal::Boolean(is) => Value::Bool(is),
        Literal::Null => Value::Null,
        other => return Err(refused(&other)),
    })
}

impl Compiler {
    fn projection(&mut self, mut items: Vec<SelectItem>) -> Result<Projection, Fault> {
        if let [SelectItem::Wildcard(options)] = items.as_slice() {
            let text = options.to_string();
            return if text.is_empty() { Ok(Projection::All) } else { Err(refused(&text)) };
        }
        if let [SelectItem::QualifiedWildcard(kind, options)] = items.as_slice() {
            let text = kind.to_string();
            let name = text.trim_end_matches(".*").trim_matches('"');
            let is_right = self.is_table(name) && options.to_string().is_empty();
            return if is_right { Ok(Projection::All) } else { Err(refused(&text)) };
        }
        if let [SelectItem::UnnamedExpr(Expr::Function(function))] = items.as_slice()
            && let Some(size) = Self::split_size(function)?
        {
            return Ok(Projection::Split(size));
        }
        if items.len() > ITEMS_MAX {
            let text = format!("A statement selects at most {ITEMS_MAX} columns, or all by *.");
            return Err(wrong(text));
        }
        let compiled: Result<Vec<Item>, Fault> =
            items.drain(..).map(|item| self.item(item)).collect();
        Ok(Projection::Items(compiled?))
    }

    fn item(&mut self, item: SelectItem) -> Result<Item, Fault> {
        let (expr, alias) = match item {
            SelectItem::UnnamedExpr(expr) => (expr, None),
            SelectItem::ExprWithAlias { expr, alias } => (expr, Some(alias.value)),
            other => return Err(refused(&other)),
        };
        let expression = self.expression(expr)?;
        let own = match &expression {
            // `_2` in the answer would be its column of another number.
            Expression::Column(at) if self.columns[*at].ordinal().is_some() => None,
            Expression::Column(at) => self.columns[*at].name().map(str::to_owned),
            _ => None,
        };
        Ok(Item { expression, name: alias.or(own) })
    }

    pub(crate) fn expressions(&mut self, exprs: Vec<Expr>) -> Result<Vec<Expression>, Fault> {
        exprs.into_iter().map(|expr| self.expression(expr)).collect()
    }

    pub(crate) fn boxed(&mut self, expr: Expr) -> Result<Box<Expression>, Fault> {
        self.expression(expr).map(Box::new)
    }

    pub(crate) fn expression(&mut self, expr: Expr) -> Result<Expression, Fault> {
        // `a IS NULL IS NULL ...` is deep without being nested.
        if self.depth == DEPTH_MAX {
            return Err(wrong(format!("More than {DEPTH_MAX} expressions are within each other.")));
        }
        if self.count == EXPRESSIONS_MAX {
            return Err(wrong(format!("A statement has at most {EXPRESSIONS_MAX} expressions.")));
        }
        self.count += 1;
        self.depth += 1;
        let expression = self.shallow(expr);
        self.depth -= 1;
        expression
    }

    fn shallow(&mut self, expr: Expr) -> Result<Expression, Fault> {
        Ok(match expr {
            Expr::Nested(inner) => self.expression(*inner)?,
            Expr::Value(value) => Expression::Literal(literal(value.value)?),
            Expr::Identifier(name) => self.column(vec![name], Vec::new())?,
            Expr::CompoundIdentifier(names) => self.column(names, Vec::new())?,
            Expr::CompoundFieldAccess { root, access_chain } => match *root {
                Expr::Identifier(name) => self.column(vec![name], access_chain)?,
                Expr::CompoundIdentifier(names) => self.column(names, access_chain)?,
                other => return Err(refused(&other)),
            },
            Expr::BinaryOp { .. } => self.chain(expr)?,
            Expr::UnaryOp { op: UnaryOperator::Not, expr } => Expression::Not(self.boxed(*expr)?),
            Expr::UnaryOp { op: UnaryOperator::Minus, expr } => {
                Expression::Negate(self.boxed(*expr)?)
            }
            Expr::UnaryOp { op: UnaryOperator::Plus, expr } => self.expression(*expr)?,
            Expr::IsNull(of) => Expression::IsNull(self.boxed(*of)?),
            Expr::IsNotNull(of) => not(Expression::IsNull(self.boxed(*of)?)),
            Expr::IsUnknown(of) => Expression::IsMissing(self.boxed(*of)?),
            Expr::IsNotUnknown(of) => not(Expression::IsMissing(self.boxed(*of)?)),
            Expr::IsTrue(of) => Expression::IsTruth(self.boxed(*of)?, true),
            Expr::IsNotTrue(of) => not(Expression::IsTruth(self.boxed(*of)?, true)),
            Expr::IsFalse(of) => Expression::IsTruth(self.boxed(*of)?, false),
            Expr::IsNotFalse(of) => not(Expression::IsTruth(self.boxed(*of)?, false)),
            Expr::In { expr, target: InTarget::List(list), negated, global: false } => {
                let within = Expression::In(self.boxed(*expr)?, List::new(self.expressions(list)?));
                if negated { not(within) } else { within }
            }
            Expr::Between { expr, negated, low, high } => {
                let operands = [*expr, *low, *high].map(|expr| self.expression(expr));
                let [value, low, high] = operands;
                let between = Expression::Between(Box::new([value?, low?, high?]));
                if negated { not(between) } else { between }
            }
            Expr::Like { negated, any: false, expr, pattern, escape_char } => {
                let like = self.like(*expr, *pattern, escape_char.map(|escape| *escape))?;
                if negated { not(like) } else { like }
            }
            Expr::Cast { kind: CastKind::Cast, expr, data_type, format: None } => {
                let kind = Type::named(&data_type.to_string());
                let kind = kind.ok_or_else(|| refused(&data_type))?;
                Expression::Cast(self.boxed(*expr)?, kind)
            }
            Expr::TypedString(typed) => {
                let kind = Type::named(&typed.data_type.to_string());
                let kind = kind.ok_or_else(|| refused(&typed.data_type))?;
                let text = Expression::Literal(literal(typed.value.value)?);
                Expression::Cast(Box::new(text), kind)
            }
            Expr::Case { operand, conditions, else_result, .. } => {
                let otherwise = else_result.map(|result| self.expression(*result)).transpose()?;
                let operand = operand.map(|operand| self.expression(*operand)).transpose()?;
                let branches = self.branches(conditions)?;
                Expression::Case(Box::new(Case { operand, branches, otherwise }))
            }
            other => self.called(other)?,
        })
    }
}

fn not(operand: Expression) -> Expression {
    Expression::Not(Box::new(operand))
}

/// The operator that joins the operands of a chain.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Joint {
    And,
    Or,
    Compare(Comparison),
    Calculate(Arithmetic),
}

fn joint(operator: &BinaryOperator) -> Result<Joint, Fault> {
    match operator {
        BinaryOperator::And => Ok(Joint::And),
        BinaryOperator::Or => Ok(Joint::Or),
        other => match (comparison(other), arithmetic(other)) {
            (Some(comparison), _) => Ok(Joint::Compare(comparison)),
            (_, Some(arithmetic)) => Ok(Joint::Calculate(arithmetic)),
            (None, None) => Err(refused(other)),
        },
    }
}

/// `left` joined with `right`. A chain of the same kind becomes longer, not deeper.
fn joined(left: Expression, joint: Joint, right: Expression) -> Expression {
    match (joint, left) {
        (Joint::And, Expression::And(mut operands)) => {
            operands.push(right);
            Expression::And(operands)
        }
        (Joint::And, left) => Expression::And(vec![left, right]),
        (Joint::Or, Expression::Or(mut operands)) => {
            operands.push(right);
            Expression::Or(operands)
        }
        (Joint::Or, left) => Expression::Or(vec![left, right]),
        (Joint::Compare(comparison), left) => {
            Expression::Compare(comparison, Box::new([left, right]))
        }
        (Joint::Calculate(arithmetic), Expression::Calculate(first, mut rest)) => {
            rest.push((arithmetic, right));
            Expression::Calculate(first, rest)
        }
        (Joint::Calculate(arithmetic), left) => {
            Expression::Calculate(Box::new(left), vec![(arithmetic, right)])
        }
    }
}

impl Compiler {
    fn branches(
        &mut self,
        conditions: Vec<CaseWhen>,
    ) -> Result<Vec<(Expression, Expression)>, Fault> {
        let mut branches = Vec::new();
        for when in conditions {
            branches.push((self.expression(when.condition)?, self.expression(when.result)?));
        }
        Ok(branches)
    }

    /// A chain of operators. It leans to the left and is as deep as it is long, so it is walked in
    /// a loop. Of comparisons, `a = b = c`, it may not be longer than is deep elsewhere.
    fn chain(&mut self, expr: Expr) -> Result<Expression, Fault> {
        let mut rights = Vec::new();
        let mut left = expr;
        while let Expr::BinaryOp { left: inner, op, right } = left {
            rights.push((joint(&op)?, *right));
            left = *inner;
        }
        let comparisons = rights.iter().filter(|(joint, _)| matches!(joint, Joint::Compare(_)));
        if comparisons.count() > 8 {
            return Err(wrong("Too many comparisons without brackets."));
        }
        let mut sum = self.expression(left)?;
        for (joint, right) in rights.into_iter().rev() {
            sum = joined(sum, joint, self.expression(right)?);
        }
        Ok(sum)
    }

    fn like(
        &mut self,
        text: Expr,
        pattern: Expr,
        escape: Option<Expr>,
    ) -> Result<Expression, Fault> {
        let escape = match escape {
            None => None,
            Some(Expr::Value(value)) => match value.value {
                Literal::SingleQuotedString(text) if text.chars().count() == 1 => {
                    text.chars().next()
                }
                other => return Err(refused(&format!("ESCAPE {other}"))),
            },
            Some(other) => return Err(refused(&format!("ESCAPE {other}"))),
        };
        let (text, pattern) = (self.expression(text)?, self.expression(pattern)?);
        let prepared = match &pattern {
            Expression::Literal(value) if !value.is_null() => {
                let pattern = Pattern::new(&value.written(), escape);
                Some(pattern.map_err(|trouble| trouble.fatal(0))?)
            }
            _ => None,
        };
        Ok(Expression::Like(Box::new(Like { text, pattern, escape, prepared })))
    }

    fn is_table(&self, name: &str) -> bool {
        let is_alias = |alias: &String| alias.eq_ignore_ascii_case(name);
        self.alias.as_ref().is_some_and(is_alias) || name.eq_ignore_ascii_case("BlobStorage")
    }

    /// The column that a path leads to. A first name that is the table's or its alias is left out.
    fn column(&mut self, names: Vec<Ident>, chain: Vec<AccessExpr>) -> Result<Expression, Fault> {
        let named = |ident: Ident| Access::Name {
            name: ident.value,
            is_exact: ident.quote_style.is_some(),
        };
        let mut path: Vec<Access> = names.into_iter().map(named).collect();
        for access in chain {
            path.push(match access {
                AccessExpr::Dot(Expr::Identifier(ident)) => named(ident),
                AccessExpr::Subscript(Subscript::Index { index: Expr::Value(index) }) => {
                    match literal(index.value)? {
                        Value::Text(text) => {
                            Access::Name { name: text.into_owned(), is_exact: true }
                        }
                        other => {
                            match crate::query::value::cast::int(&other).map(usize::try_from) {
                                Ok(Ok(at)) => Access::Index(at),
                                _ => return Err(wrong("An index is a whole number from zero.")),
                            }
                        }
                    }
                }
                other => return Err(refused(&format!("a path with {other}"))),
            });
        }
        if let [Access::Name { name, .. }, _, ..] = path.as_slice()
            && self.is_table(name)
        {
            path.remove(0);
        }
        let column = Column { path };
        if column.ordinal() == Some(0) {
            let text = "Columns count from _1.";
            return Err(Fault::fatal(INVALID_COLUMN_ORDINAL, text, 0));
        }
        self.has_plain_column |= self.is_in_projection && !self.is_in_aggregate;
        if let Some(at) = self.columns.iter().position(|known| *known == column) {
            return Ok(Expression::Column(at));
        }
        if self.columns.len() == COLUMNS_MAX {
            return Err(wrong(format!("A statement refers to at most {COLUMNS_MAX} columns.")));
        }
        self.columns.push(column);
        Ok(Expression::Column(self.columns.len() - 1))
    }

    /// The result of an aggregate.
    pub(crate) fn aggregate(
        &mut self,
        kind: crate::query::eval::aggregate::Kind,
        operand: Option<Expr>,
    ) -> Result<Expression, Fault> {
        if !self.is_in_projection {
            return Err(wrong("An aggregate stands behind SELECT only."));
        }
        if self.is_in_aggregate {
            return Err(wrong("An aggregate of an aggregate is not supported."));
        }
        if self.aggregates.len() == AGGREGATES_MAX {
            return Err(wrong(format!("A statement has at most {AGGREGATES_MAX} aggregates.")));
        }
        self.is_in_aggregate = true;
        let operand = operand.map(|operand| self.expression(operand)).transpose();
        self.is_in_aggregate = false;
        self.aggregates.push(Aggregate { kind, operand: operand? });
        Ok(Expression::Aggregate(self.aggregates.len() - 1))
    }
}
