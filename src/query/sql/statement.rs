//! `SELECT ... FROM ... [WHERE ...] [LIMIT ...]`. The frame is read here; the expressions in it are
//! read by `sqlparser`.

use sqlparser::ast::Expr;
use sqlparser::ast::SelectItem;
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::keywords::RESERVED_FOR_TABLE_ALIAS;
use sqlparser::parser::Parser;
use sqlparser::parser::ParserError;
use sqlparser::tokenizer::Token;
use sqlparser::tokenizer::TokenWithSpan;
use sqlparser::tokenizer::Tokenizer;

use crate::query::request::Fault;
use crate::query::sql::column::Access;
use crate::query::sql::quote::cut;
use crate::query::sql::wrong;

/// Bytes of a statement.
pub(crate) const STATEMENT_MAX: usize = 256 * 1024;
/// Words and signs of a statement, without literals and commas. It bounds chains of operators,
/// which become deep trees.
const TOKENS_MAX: usize = 2048;
/// Expressions within each other.
const DEPTH_MAX: usize = 40;

/// The language of the service: ANSI, with names that may begin with an underscore.
#[derive(Debug)]
struct Language;

impl Dialect for Language {
    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_'
    }

    fn is_delimited_identifier_start(&self, c: char) -> bool {
        c == '"'
    }
}

/// The parts of a statement.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) items: Vec<SelectItem>,
    pub(crate) from: Vec<Access>,
    pub(crate) alias: Option<String>,
    pub(crate) filter: Option<Expr>,
    pub(crate) limit: Option<u64>,
}

fn of_parser(error: ParserError) -> Fault {
    match error {
        ParserError::TokenizerError(text) | ParserError::ParserError(text) => wrong(cut(&text)),
        ParserError::RecursionLimitExceeded => {
            wrong(format!("The statement has more than {DEPTH_MAX} expressions within each other."))
        }
    }
}

/// Steps of the path in `FROM`: each may look through the whole record.
const PATH_MAX: usize = 16;

/// Tokens of a statement. `IS MISSING`, which SQL does not have, becomes `IS UNKNOWN`, which this
/// language does not have.
fn tokens(text: &str) -> Result<Vec<TokenWithSpan>, Fault> {
    if text.len() > STATEMENT_MAX {
        return Err(wrong(format!("The statement has more than {STATEMENT_MAX} bytes.")));
    }
    let tokenized = Tokenizer::new(&Language, text).tokenize_with_location();
    let mut tokens = tokenized.map_err(|error| of_parser(error.into()))?;
    tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
    let is_item = |token: &Token| {
        matches!(token, Token::Comma | Token::Number(..) | Token::SingleQuotedString(_))
    };
    if tokens.iter().filter(|token| !is_item(&token.token)).count() > TOKENS_MAX {
        return Err(wrong(format!("The statement has more than {TOKENS_MAX} words and signs.")));
    }
    without_from_in_trim(&mut tokens);
    let mut is_after_is = false;
    for token in &mut tokens {
        let Token::Word(word) = &token.token else {
            is_after_is = false;
            continue;
        };
        let is_plain = word.quote_style.is_none();
        if is_after_is && is_plain && word.keyword == Keyword::UNKNOWN {
            return Err(wrong("IS UNKNOWN is not supported."));
        }
        if is_after_is && is_plain && word.value.eq_ignore_ascii_case("missing") {
            token.token = Token::make_keyword("UNKNOWN");
            is_after_is = false;
        } else {
            is_after_is =
                word.keyword == Keyword::IS || (is_after_is && word.keyword == Keyword::NOT);
        }
    }
    Ok(tokens)
}

/// `TRIM(LEADING FROM x)` becomes `TRIM(LEADING x)`, which is the form that the parser has for it.
fn without_from_in_trim(tokens: &mut Vec<TokenWithSpan>) {
    let is = |token: &TokenWithSpan, keywords: &[Keyword]| matches!(&token.token, Token::Word(word) if keywords.contains(&word.keyword));
    let ends = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING];
    let is_trim = |window: &[TokenWithSpan]| {
        is(&window[0], &[Keyword::TRIM])
            && window[1].token == Token::LParen
            && is(&window[2], &ends)
            && is(&window[3], &[Keyword::FROM])
    };
    let found: Vec<usize> =
        tokens.windows(4).enumerate().filter(|(_, w)| is_trim(w)).map(|(at, _)| at + 3).collect();
    for at in found.into_iter().rev() {
        tokens.remove(at);
    }
}

/// A token that has no place where it stands.
fn unexpected(token: &TokenWithSpan, expected: &str) -> Fault {
    let start = token.span.start;
    let place = match token.token == Token::EOF {
        true => "The statement ends early".to_owned(),
        false => {
            let quoted = cut(&token.token.to_string());
            format!("Unexpected '{quoted}' at line {}, column {}", start.line, start.column)
        }
    };
    let language = "A query has SELECT, FROM BlobStorage, WHERE and LIMIT only.";
    wrong(format!("{place}: expected {expected}. {language}"))
}

/// Reads the frame of a statement.
pub(crate) fn parse(text: &str) -> Result<Parts, Fault> {
    let parser = Parser::new(&Language).with_recursion_limit(DEPTH_MAX);
    let mut parser = parser.with_tokens_with_locations(tokens(text)?);
    if !parser.parse_keyword(Keyword::SELECT) {
        return Err(unexpected(parser.peek_token_ref(), "SELECT"));
    }
    if parser.parse_keyword(Keyword::DISTINCT) {
        return Err(wrong("SELECT DISTINCT is not supported."));
    }
    let items = parser.parse_comma_separated(Parser::parse_select_item).map_err(of_parser)?;
    if !parser.parse_keyword(Keyword::FROM) {
        return Err(unexpected(parser.peek_token_ref(), "FROM"));
    }
    let from = table(&mut parser)?;
    let alias = alias(&mut parser)?;
    let filter = match parser.parse_keyword(Keyword::WHERE) {
        true => Some(parser.parse_expr().map_err(of_parser)?),
        false => None,
    };
    let limit = limit(&mut parser)?;
    while parser.consume_token(&Token::SemiColon) {}
    match parser.peek_token_ref() {
        token if token.token == Token::EOF => Ok(Parts { items, from, alias, filter, limit }),
        token => Err(unexpected(token, "the end")),
    }
}

/// The whole number that a token is.
fn number<T: std::str::FromStr>(token: &Token) -> Option<T> {
    if let Token::Number(digits, _) = token { digits.parse().ok() } else { None }
}

fn limit(parser: &mut Parser<'_>) -> Result<Option<u64>, Fault> {
    if !parser.parse_keyword(Keyword::LIMIT) {
        return Ok(None);
    }
    let token = parser.next_token();
    let limit = number(&token.token).ok_or_else(|| unexpected(&token, "a number of records"));
    limit.map(Some)
}

/// `BlobStorage`, `BlobStorage[*]`, or the latter with a path. The brackets contain a number or
/// `*`.
fn table(parser: &mut Parser<'_>) -> Result<Vec<Access>, Fault> {
    let token = parser.next_token();
    let is_blob = |word: &str| word.eq_ignore_ascii_case("BlobStorage");
    if !matches!(&token.token, Token::Word(word) if is_blob(&word.value)) {
        return Err(unexpected(&token, "BlobStorage"));
    }
    let mut path = Vec::new();
    loop {
        if parser.consume_token(&Token::Period) {
            let token = parser.next_token();
            let Token::Word(word) = &token.token else {
                return Err(unexpected(&token, "a name"));
            };
            let (name, is_exact) = (word.value.clone(), word.quote_style.is_some());
            path.push(Access::Name { name, is_exact });
        } else if parser.consume_token(&Token::LBracket) {
            let token = parser.next_token();
            let index = match token.token == Token::Mul {
                true => Some(Access::Each),
                false => number(&token.token).map(Access::Index),
            };
            path.push(index.ok_or_else(|| unexpected(&token, "a number or *"))?);
            if !parser.consume_token(&Token::RBracket) {
                return Err(unexpected(parser.peek_token_ref(), "]"));
            }
        } else {
            break;
        }
    }
    if path.len() > PATH_MAX {
        return Err(wrong(format!("The path of FROM has more than {PATH_MAX} steps.")));
    }
    match path.first() {
        // The first `[*]` means the records of the blob.
        Some(Access::Each) => drop(path.remove(0)),
        Some(_) => return Err(wrong("A path in FROM begins with BlobStorage[*].")),
        None => {}
    }
    Ok(path)
}

fn alias(parser: &mut Parser<'_>) -> Result<Option<String>, Fault> {
    let is_needed = parser.parse_keyword(Keyword::AS);
    let token = parser.peek_token_ref();
    if let Token::Word(word) = &token.token
        && (word.quote_style.is_some() || !RESERVED_FOR_TABLE_ALIAS.contains(&word.keyword))
    {
        let alias = word.value.clone();
        parser.next_token();
        return Ok(Some(alias));
    }
    if is_needed { Err(unexpected(token, "a name")) } else { Ok(None) }
}
