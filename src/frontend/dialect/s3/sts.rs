//! Calls of the token service: who signs them, and the temporary keys that they get. Nothing is
//! stored: the keys are derived (`auth/session.rs`).

use std::sync::Arc;
use std::time::Duration;

use http::Response;
use http::request::Parts;
use ring::digest;
use serde_json::json;
use sha2::Digest;
use sha2::Sha256;

use crate::audit_log;
use crate::audit_log::Change;
use crate::audit_log::Thing;
use crate::auth::Principal;
use crate::auth::Session;
use crate::auth::SessionHolder;
use crate::auth::SignedService;
use crate::auth::claim;
use crate::auth::secret_proof;
use crate::frontend::access::caller::Caller;
use crate::frontend::access::hosts;
use crate::frontend::access::user_caller::UserCaller;
use crate::frontend::accounts::Account;
use crate::frontend::accounts::User;
use crate::frontend::admission::Pass;
use crate::frontend::admission::UNKNOWN_ACCOUNT;
use crate::frontend::body::RequestBody;
use crate::frontend::body::ResponseBody;
use crate::frontend::dialect::Arrival;
use crate::frontend::dialect::identify::check_private;
use crate::frontend::dialect::identify::principal;
use crate::frontend::dialect::s3::S3Settings;
use crate::frontend::dialect::s3::host;
use crate::frontend::dialect::s3::refusals;
use crate::frontend::dialect::s3::sender;
use crate::frontend::dialect::s3::sender::Holder;
use crate::frontend::dialect::s3::sender::KeyHolder;
use crate::frontend::errors;
use crate::frontend::state::FrontEnd;
use crate::protocol::model::Reason;
use crate::protocol::model::Refusal;
use crate::protocol::s3;
use crate::protocol::s3::sts;
use crate::protocol::s3::sts::Answer;
use crate::protocol::s3::sts::Call;
use crate::protocol::s3::sts::Credentials;
use crate::protocol::s3::sts::Identity;
use crate::protocol::s3::sts::Parameters;
use crate::protocol::s3::sts::RoleCall;
use crate::protocol::s3::sts::StsEcho;
use crate::protocol::s3::sts::StsError;
use crate::types::AccessKeyId;
use crate::types::AccountName;
use crate::types::OwnerIds;

/// The default name of a role and of a session.
const UNNAMED: &str = "session";
/// The most groups of a session token, as for user delegation keys.
const GROUPS_MAX: usize = 32;

/// The answer to a call, and facts for logs and metrics.
pub(in crate::frontend) struct TokenAnswer {
    /// The document.
    pub(in crate::frontend) response: Response<ResponseBody>,
    /// The call, for metrics and logs.
    pub(in crate::frontend) operation: &'static str,
    /// The account, once it is known.
    pub(in crate::frontend) account: Option<Arc<Account>>,
    /// The sender, for the audit log.
    pub(in crate::frontend) principal: audit_log::Principal,
    /// The keys that were issued, for the audit log.
    pub(in crate::frontend) change: Option<Change>,
    /// Its place among the requests, until its answer is sent.
    pub(in crate::frontend) pass: Option<Pass>,
}

/// A call of the token service.
#[derive(Clone, Copy)]
struct TokenCall<'a> {
    front: &'a FrontEnd,
    settings: &'a S3Settings,
    arrival: Arrival<'a>,
}

/// Answers a call. Errors are documents.
pub(in crate::frontend) async fn serve(
    front: &FrontEnd,
    settings: &S3Settings,
    (arrival, id): (Arrival<'_>, &str),
    body: &mut RequestBody,
) -> TokenAnswer {
    let echo = StsEcho { request_id: id.to_owned(), time: front.env.clock.now() };
    let mut answer = TokenAnswer {
        response: Response::new(ResponseBody::full(bytes::Bytes::new())),
        operation: "TokenService",
        account: None,
        principal: audit_log::Principal::Unknown,
        change: None,
        pass: None,
    };
    let call = TokenCall { front, settings, arrival };
    let rendered = match call.answer(body, &mut answer).await {
        Ok(done) => sts::render(&done, &echo),
        Err(error) => {
            tracing::debug!(code = error.code, operation = answer.operation, "refused");
            if body.is_unread() {
                body.drain().await;
            }
            sts::error(&error, &echo)
        }
    };
    answer.response = rendered.map(ResponseBody::full);
    answer
}

impl TokenCall<'_> {
    async fn answer(
        self,
        body: &mut RequestBody,
        notes: &mut TokenAnswer,
    ) -> Result<Answer, StsError> {
        let front = self.front;
        let refused = |error: Refusal| {
            front.count_refused(&error);
            StsError::of(&error)
        };
        let claimed = self.claimed_account();
        let payer = claimed.as_ref().map_or(UNKNOWN_ACCOUNT, |account| account.id);
        let mut pass = front.load.gate.enter(payer).await.map_err(refused)?;
        if claimed.is_none() {
            pass.open().map_err(refused)?;
        }
        notes.pass = Some(pass);
        let body = read(body).await.map_err(refused)?;
        let call = sts::parse(&Parameters::read(self.arrival.head.uri.query(), &body)?)?;
        notes.operation = call.name();
        match call {
            Call::AssumeRoleWithWebIdentity(role, token) => {
                self.with_token(&role, &token, notes).await
            }
            Call::AssumeRole(role) => {
                // The answer contains a secret.
                let why = "Temporary keys are given over https only.";
                check_private(self.arrival.peer, why).map_err(refused)?;
                let signer = self.signer(&body).map_err(refused)?;
                self.admit(&signer.account, notes).map_err(refused)?;
                self.of_user(&role, signer, notes)
            }
            Call::GetCallerIdentity => {
                let signer = self.signer(&body).map_err(refused)?;
                self.admit(&signer.account, notes).map_err(refused)?;
                notes.principal = named(&signer.holder);
                Ok(Answer::Caller(identity(&signer)))
            }
        }
    }

    /// The account that a request claims, before anything is verified: the call uses only the share
    /// of that account.
    fn claimed_account(self) -> Option<Arc<Account>> {
        let name = self.arrival.address()?.account;
        let is_signed = {
            let named =
                s3::address::address(host(self.head()), "/", &self.settings.domains).ok()?;
            claim(&self.settings.signed_for(self.head(), &named)).ok().flatten().is_some()
        };
        self.front.accounts.get(&name).filter(|_| is_signed)
    }

    fn head(&self) -> &Parts {
        self.arrival.head
    }

    /// Checks the host that names an account, and counts the request.
    fn admit(self, account: &Arc<Account>, notes: &mut TokenAnswer) -> Result<(), Refusal> {
        let front = self.front;
        hosts::may_name(front, self.arrival.head, account)?;
        front.load.rates.count(account.id, || front.env.clock.monotonic())?;
        account.traffic.requests.inc();
        notes.account = Some(Arc::clone(account));
        Ok(())
    }

    /// Identifies the signer of a call.
    fn signer(self, body: &[u8]) -> Result<KeyHolder, Refusal> {
        let head = self.arrival.head;
        let refused = |error| refusals::from_s3(&error);
        let named = s3::address::address(host(head), head.uri.path(), &self.settings.domains)?;
        let mut sha256 = [0; 32];
        sha256.copy_from_slice(digest::digest(&digest::SHA256, body).as_ref());
        let mut signed = self.settings.signed(head, &named);
        signed.service = SignedService::TokenService { body: sha256 };
        let claim = claim(&signed).map_err(refused)?;
        let claim = claim.ok_or_else(|| Refusal::from(Reason::NoAuthenticationInformation))?;
        let token = claim.session_token(&signed);
        let holder = sender::find(self.front, claim.access_key_id(), token.as_deref())?;
        claim.verify(&signed, &holder.secrets, self.front.env.clock.now()).map_err(refused)?;
        Ok(holder)
    }

    /// `AssumeRole`.
    fn of_user(
        self,
        role: &RoleCall,
        signer: KeyHolder,
        notes: &mut TokenAnswer,
    ) -> Result<Answer, StsError> {
        notes.principal = named(&signer.holder);
        let KeyHolder { account, holder, .. } = signer;
        let user = match holder {
            Holder::User(user) => user,
            Holder::Root => {
                return Err(StsError::denied(
                    "Roles may not be assumed by root accounts: sign with the access key of a user.",
                ));
            }
            Holder::Session(..) => {
                return Err(StsError::denied("Temporary keys cannot be exchanged for others."));
            }
        };
        check_number(role, &account)?;
        let (key, proof) = self.signing_key(&account, &user)?;
        let id = user.canonical.clone();
        let holder = SessionHolder::User { key, user: id.clone(), proof };
        let session = self.session(role, user.name.as_str(), holder);
        let credentials = self.issue(&account, &session, notes)?;
        Ok(Answer::Assumed(of_session(&account, &session, &id), credentials))
    }

    /// The signing access key, and the proof of its secret for the token.
    fn signing_key(
        self,
        account: &Account,
        user: &User,
    ) -> Result<(AccessKeyId, [u8; 32]), StsError> {
        let named = s3::address::address(host(self.head()), "/", &self.settings.domains);
        let id = named.ok().and_then(|named| {
            let claim = claim(&self.settings.signed_for(self.arrival.head, &named)).ok()??;
            AccessKeyId::new(claim.access_key_id()).ok()
        });
        let unknown = || StsError::of(&Reason::UnknownAccessKey.into());
        let id = id.ok_or_else(unknown)?;
        let key = account.users.key(id.as_str()).filter(|key| key.user.name == user.name);
        let (key, delegation) = key.zip(account.delegation.as_ref()).ok_or_else(unknown)?;
        Ok((id, secret_proof(delegation, &key.secrets)))
    }

    /// `AssumeRoleWithWebIdentity`.
    async fn with_token(
        self,
        role: &RoleCall,
        token: &str,
        notes: &mut TokenAnswer,
    ) -> Result<Answer, StsError> {
        let front = self.front;
        let principal = principal(front, token, self.arrival.peer).await;
        let principal = principal.map_err(|refusal| of_token(&refusal))?;
        notes.principal = Caller::User(Box::new(UserCaller::of_token(principal.clone()))).named();
        let account = self.account_of(role)?;
        let refused = |error: Refusal| {
            front.count_refused(&error);
            StsError::of(&error)
        };
        self.admit(&account, notes).map_err(refused)?;
        // The same error for a missing role, so that it reveals no account.
        if !principal.has_a_role(account.name.as_str(), &account.assignments) {
            return Err(StsError::denied(
                "Not authorized to perform sts:AssumeRoleWithWebIdentity",
            ));
        }
        let subject = [principal.object.clone(), principal.issuer.name.clone()];
        let id = hashed(&subject);
        let holder = holder_of(&principal, &account);
        let session = self.session(role, UNNAMED, holder);
        let credentials = self.issue(&account, &session, notes)?;
        let identity = of_session(&account, &session, &id);
        Ok(Answer::AssumedWithWebIdentity(identity, credentials, subject))
    }

    /// The account of the requested role: that of its number, of the host, or the one of unsigned
    /// requests.
    fn account_of(self, role: &RoleCall) -> Result<Arc<Account>, StsError> {
        let named = s3::address::address(host(self.head()), "/", &self.settings.domains);
        let by_host = named.ok().and_then(|named| AccountName::new(&named.account?).ok());
        let unknown =
            || StsError::denied("Not authorized to perform sts:AssumeRoleWithWebIdentity");
        let find = |name: &AccountName| {
            let found = self.front.accounts.find(name);
            found.map_err(|unread| StsError::of(&errors::unread_account(name, &unread)))
        };
        if let Some(role) = &role.role {
            let found = self.front.accounts.find_number(&role.account);
            let account = found.map_err(|unread| StsError::of(&errors::unread_key(&unread)))?;
            let is_there = |found: &Arc<Account>| by_host.as_ref().is_none_or(|n| *n == found.name);
            return account.filter(is_there).ok_or_else(unknown);
        }
        let name = by_host.or_else(|| self.settings.account.clone()).ok_or_else(|| {
            StsError::invalid("RoleArn is missing, and no host and no setting names an account.")
        })?;
        find(&name)?.ok_or_else(unknown)
    }

    fn session(self, role: &RoleCall, name: &str, holder: SessionHolder) -> Session {
        let now = self.front.env.clock.now();
        // Whole seconds, as the answer shows it.
        let expires = now.plus(Duration::from_secs(role.duration.into())).whole_seconds();
        let short: String = name.chars().filter(char::is_ascii_graphic).take(64).collect();
        Session {
            holder,
            expires,
            role: role.role.as_ref().map_or(UNNAMED, |role| &role.name).to_owned(),
            name: role.name.clone().unwrap_or(short),
        }
    }

    /// The keys of a session.
    fn issue(
        self,
        account: &Account,
        session: &Session,
        notes: &mut TokenAnswer,
    ) -> Result<Credentials, StsError> {
        let delegation = account.delegation.as_ref().ok_or_else(|| {
            tracing::error!(account = %account.name, "the account has no secret for temporary keys");
            StsError::of(&Reason::InternalError.into())
        })?;
        let rand = &self.front.env.rand;
        let random = [rand.next_u64().to_be_bytes(), rand.next_u64().to_be_bytes()];
        let mut unique = [0; 16];
        unique.iter_mut().zip(random.as_flattened()).for_each(|(byte, random)| *byte = *random);
        let (token, keys) = session.issue(&account.name, delegation, unique);
        notes.change = Some(Change {
            of: Thing::Key,
            detail: json!({
                "access_key_id": keys.access_key_id,
                "session": session.name,
                "expires": session.expires.to_iso_seconds(),
            }),
        });
        let (access_key_id, secret) = (keys.access_key_id, keys.secret);
        Ok(Credentials { access_key_id, secret, token, expires: session.expires })
    }
}

/// The body of a call.
async fn read(body: &mut RequestBody) -> Result<Vec<u8>, Refusal> {
    let mut read = Vec::new();
    while let Some(piece) = body.next().await? {
        if read.len() + piece.len() > sts::BODY_BYTES_MAX {
            return Err(Reason::RequestBodyTooLarge.into());
        }
        read.extend_from_slice(&piece);
    }
    Ok(read)
}

/// Refuses a role of another account.
fn check_number(role: &RoleCall, account: &Account) -> Result<(), StsError> {
    let own = &account.number;
    match &role.role {
        Some(role) if role.account != *own => {
            Err(StsError::denied("The role is in another account than the key that signs."))
        }
        Some(_) | None => Ok(()),
    }
}

/// The principal, as a session token names it: of its groups only those that have a role now.
fn holder_of(principal: &Principal, account: &Account) -> SessionHolder {
    let has_role = |group: &&String| {
        account
            .assignments
            .iter()
            .any(|role| role.issuer == principal.issuer.name && role.principal == **group)
    };
    SessionHolder::Subject {
        issuer: principal.issuer.name.clone(),
        object: principal.object.clone(),
        groups: principal.groups.iter().filter(has_role).take(GROUPS_MAX).cloned().collect(),
        claimed: principal.claimed,
    }
}

/// Why a token is refused.
fn of_token(refusal: &Refusal) -> StsError {
    if refusal.reason == Reason::ServerBusy {
        return StsError::of(refusal);
    }
    let why = refusal.details.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>();
    let why = refusal.message.as_deref().unwrap_or_else(|| why.first().copied().unwrap_or(""));
    let code =
        if why.contains("expired") { "ExpiredTokenException" } else { "InvalidIdentityToken" };
    StsError { code, status: 400, message: format!("The token is refused: {why}") }
}

/// The sender of a call, as the audit log names it.
fn named(holder: &Holder) -> audit_log::Principal {
    match holder {
        Holder::Root => Caller::Key.named(),
        Holder::User(user) => Caller::User(Box::new(UserCaller::of_user(Arc::clone(user)))).named(),
        Holder::Session(session) => Caller::User(Box::new(session.1.clone())).named(),
    }
}

/// The identity of the signer, as the answer shows it.
fn identity(signer: &KeyHolder) -> Identity {
    let account = &signer.account;
    let number = account.number.clone();
    match &signer.holder {
        Holder::Root => {
            let arn = format!("arn:aws:iam::{number}:root");
            Identity { id: number.clone(), account: number, arn }
        }
        Holder::User(user) => {
            let arn = OwnerIds::arn_of_user(&account.name, &user.name);
            Identity { id: user.canonical.clone(), account: number, arn }
        }
        Holder::Session(held) => {
            let (session, caller) = &**held;
            let id = match &caller.user {
                Some(user) => user.canonical.clone(),
                None => {
                    let principal = &caller.principal;
                    hashed(&[principal.object.clone(), principal.issuer.name.clone()])
                }
            };
            of_session(account, session, &id)
        }
    }
}

fn of_session(account: &Account, session: &Session, id: &str) -> Identity {
    let number = account.number.clone();
    let Session { role, name, .. } = session;
    Identity {
        arn: format!("arn:aws:sts::{number}:assumed-role/{role}/{name}"),
        id: format!("{id}:{name}"),
        account: number,
    }
}

/// The unique id of a subject of an issuer.
fn hashed(parts: &[String]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(part.as_bytes());
        hash.update([0]);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
