"""Calls of the token service, signed by hand, and clients with the keys that it makes."""

import hashlib
import hmac
import urllib.parse
import xml.etree.ElementTree

from lib import s3, s3_users

FORM = "application/x-www-form-urlencoded; charset=utf-8"
VERSION = "2011-06-15"


def arn(account, role="any"):
    """The ARN of a role in an account."""
    return f"arn:aws:iam::{s3.account_number(account.name)}:role/{role}"


def assume(user, **more):
    """Temporary keys of a user."""
    arguments = {"RoleArn": arn(user.account), "RoleSessionName": "a-session", **more}
    return user.client("sts").assume_role(**arguments)


def clients(account, credentials, service="s3", **options):
    """A client with temporary keys."""
    return s3_users.keyed(account, credentials["AccessKeyId"], credentials["SecretAccessKey"],
                          credentials["SessionToken"], service=service, **options)


def exchange(sts, token, account, **more):
    """Temporary keys for a token."""
    return sts.assume_role_with_web_identity(RoleArn=arn(account), RoleSessionName="web", WebIdentityToken=token, **more)


class Caller:
    """Sends calls of the token service as it is told to."""

    def __init__(self, account, key_id=None, secret=None, token=None):
        self.account, self.key_id, self.secret, self.token = account, key_id, secret, token

    def post(self, parameters, headers=None, body=None, service="sts", sign=True, method="POST", path="/"):
        """A call with these parameters in a form."""
        body = (urllib.parse.urlencode(parameters) if body is None else body).encode()
        headers = {"host": self.account.address, "content-type": FORM, **(headers or {})}
        if self.key_id and sign:
            moment = s3.now()
            headers["x-amz-date"] = moment
            if self.token:
                headers["x-amz-security-token"] = self.token
            names = sorted(headers)
            lines = "".join(f"{name}:{headers[name]}\n" for name in names)
            request = "\n".join([method, path, "", lines, ";".join(names), hashlib.sha256(body).hexdigest()])
            scope = f"{moment[:8]}/{s3.REGION}/{service}/aws4_request"
            text = f"AWS4-HMAC-SHA256\n{moment}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
            key = s3.signing_key(self.secret, moment[:8], service=service)
            signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
            headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.key_id}/{scope}, "
                                        f"SignedHeaders={';'.join(names)}, Signature={signature}")
        return s3.Raw(self.account).send(method, path, headers, body)


def outcome(answer):
    """Status and code of a refusal, in the form of the token service."""
    root = xml.etree.ElementTree.fromstring(answer.body)
    space = "{https://sts.amazonaws.com/doc/2011-06-15/}"
    assert root.tag == f"{space}ErrorResponse"
    assert root.findtext(f"{space}Error/{space}Type") == ("Sender" if answer.status < 500 else "Receiver")
    assert root.findtext(f"{space}Error/{space}Message")
    assert root.findtext(f"{space}RequestId") == answer.headers["x-amzn-requestid"]
    return answer.status, root.findtext(f"{space}Error/{space}Code")
