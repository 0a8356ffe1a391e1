"""Policies of browser forms: conditions, their end, what cannot be read, and limits of lengths."""

import json

import pytest

from lib import s3_forms
from lib.s3_forms import CONTENT, END, is_empty, missing, outcome, stored

POLICY, DENIED = "Invalid Policy: ", "Invalid according to Policy: "


@pytest.mark.parametrize("version", [4, 2])
@pytest.mark.parametrize("fields, conditions", [
    ({}, []),
    ({"acl": "private"}, [["eq", "$acl", "private"]]),
    ({"acl": "private"}, [["EQ", "$ACL", "private"]]),
    ({"key": "user/eric/a"}, [["starts-with", "$key", "user/eric/"]]),
    ({"key": "user/eric/a"}, [["StArTs-WiTh", "$KeY", ""]]),
    ({"Content-Type": "image/png, image/gif"}, [["starts-with", "$Content-Type", "image/"]]),
    ({"x-amz-meta-a": ""}, [["starts-with", "$x-amz-meta-a", ""]]),
    ({"x-unknown": "1"}, []),
    ({}, [["content-length-range", 7, 7]]),
    ({}, [["content-length-range", "0", "7"]]),
    ({}, [["content-length-range", 0, 10], ["content-length-range", 5, 5368709120]]),
    ({"success_action_status": "200"}, [["starts-with", "$success_action_status", "2"]]),
])
def test_conditions_that_hold(form, raw, client, bucket, version, fields, conditions):
    form.version, form.conditions = version, conditions
    form.fields.update(fields)
    assert form.post(raw).status in (200, 204)
    assert stored(client, bucket, form.fields["key"]) == CONTENT


@pytest.mark.parametrize("version", [4, 2])
@pytest.mark.parametrize("fields, conditions, text", [
    ({"acl": "private"}, [{"acl": "public-read"}], 'Policy Condition failed: ["eq", "$acl", "public-read"]'),
    ({}, [{"acl": "private"}], 'Policy Condition failed: ["eq", "$acl", "private"]'),
    ({}, [["starts-with", "$acl", ""]], 'Policy Condition failed: ["starts-with", "$acl", ""]'),
    ({"key": "A"}, [["eq", "$key", "a"]], 'Policy Condition failed: ["eq", "$key", "a"]'),
    ({"key": "k"}, [["eq", "key", "k"]], 'Policy Condition failed: ["eq", "key", "k"]'),
    ({"key": "other/a"}, [["starts-with", "$key", "user/"]], 'Policy Condition failed: ["starts-with", "$key", "user/"]'),
    ({"Content-Type": "image/png,text/html"}, [["starts-with", "$Content-Type", "image/"]],
     'Policy Condition failed: ["starts-with", "$Content-Type", "image/"]'),
    ({}, [{"bucket": "another"}], 'Policy Condition failed: ["eq", "$bucket", "another"]'),
    ({}, [{"x": 'a"b'}], 'Policy Condition failed: ["eq", "$x", "a\\"b"]'),
])
def test_conditions_that_fail(form, raw, client, bucket, version, fields, conditions, text):
    form.version, form.conditions = version, conditions
    form.fields.update(fields)
    assert outcome(form.post(raw)) == (403, "AccessDenied", DENIED + text)
    assert is_empty(client, bucket)


@pytest.mark.parametrize("version, name", [
    (4, "key"), (4, "bucket"), (4, "x-amz-date"), (4, "x-amz-credential"), (4, "x-amz-algorithm"), (4, "acl"), (4, "Content-Type"),
    (4, "tagging"), (4, "x-amz-meta-a"), (4, "success_action_status"), (4, "submit"), (4, "x-amz-checksum-sha256"), (2, "key"),
    (2, "bucket"), (2, "acl"),
])
def test_each_field_needs_a_condition(form, raw, client, bucket, version, name):
    form.version, form.uncovered = version, {name}
    if name.startswith("x-amz-") and name in ("x-amz-date", "x-amz-credential", "x-amz-algorithm") or name == "bucket":
        pass
    else:
        form.fields.setdefault(name, "1")
    assert outcome(form.post(raw)) == (403, "AccessDenied", f"{DENIED}Extra input fields: {name}")
    assert is_empty(client, bucket)


def test_several_fields_without_a_condition(form, raw):
    form.fields.update({"one": "1", "two": "2"})
    form.uncovered = {"one", "two"}
    assert outcome(form.post(raw))[2] == f"{DENIED}Extra input fields: one, two"


@pytest.mark.parametrize("seconds", [-1, -86400 * 400])
def test_expired_policies(form, raw, client, bucket, seconds):
    form.expiration = s3_forms.later(seconds)
    assert outcome(form.post(raw)) == (403, "AccessDenied", f"{DENIED}Policy expired.")
    assert is_empty(client, bucket)


@pytest.mark.parametrize("policy, text", [
    ("", "Invalid JSON."), ("no json", "Invalid JSON."), ("[]", "Invalid JSON."), ('{"a": 1', "Invalid JSON."),
    ({"conditions": []}, "Policy missing expiration."),
    ({"expiration": END}, "Policy missing conditions."),
    ({"EXPIRATION": END, "conditions": []}, "Unexpected: 'expiration'"),
    ({"expiration": END, "CONDITIONS": []}, "Unexpected: 'conditions'"),
    ({"expiration": END, "conditions": [], "Statement": []}, "Unexpected: 'statement'"),
    ({"expiration": 1, "conditions": []}, "Invalid JSON."),
    ({"expiration": "tomorrow", "conditions": []}, "Invalid 'expiration' value: 'tomorrow'"),
    ({"expiration": "2999-01-01 00:00:00", "conditions": []}, "Invalid 'expiration' value: '2999-01-01 00:00:00'"),
    ({"expiration": "2999-01-01T00:00:00+02:00", "conditions": []}, "Invalid 'expiration' value: '2999-01-01T00:00:00+02:00'"),
    ({"expiration": "2999-02-30T00:00:00Z", "conditions": []}, "Invalid 'expiration' value: '2999-02-30T00:00:00Z'"),
    ({"expiration": END, "conditions": {}}, "Invalid 'conditions' value: must be a List."),
    ({"expiration": END, "conditions": [{}]},
     "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified."),
    ({"expiration": END, "conditions": [{"a": "b", "c": "d"}]},
     "Invalid Simple-Condition: Simple-Conditions must have exactly one property specified."),
    ({"expiration": END, "conditions": [{"Content-Length": 5}]}, "Invalid Simple-Condition: value must be a string."),
    ({"expiration": END, "conditions": ["bucket"]}, "Invalid Condition: must be a List or Object."),
    ({"expiration": END, "conditions": [[]]}, "Invalid Condition: missing operation identifier."),
    ({"expiration": END, "conditions": [["ends-with", "$key", "k"]]}, "Invalid Condition: unknown operation 'ends-with'."),
    ({"expiration": END, "conditions": [["eq", "$key"]]}, "Invalid eq: wrong number of arguments."),
    ({"expiration": END, "conditions": [["content-length-range", 0]]}, "Invalid content-length-range: wrong number of arguments."),
    ({"expiration": END, "conditions": [["content-length-range", -1, 0]]}, None),
    ({"expiration": END, "conditions": [["content-length-range", 0, "x"]]}, None),
    ({"expiration": END, "conditions": [["content-length-range", 0, 1.5]]}, None),
    ('{"expiration": "' + END + '", "conditions": ' + "[" * 500 + "]" * 500 + "}", "Invalid JSON."),
])
def test_policies_that_cannot_be_read(form, raw, client, bucket, policy, text):
    form.policy = policy
    answer = form.post(raw)
    if policy == "":
        assert outcome(answer) == (400, "InvalidArgument", missing("policy"))
        return
    assert (answer.status, answer.code()) == (400, "InvalidPolicyDocument")
    assert answer.text("Message").startswith(POLICY) and text in (None, answer.text("Message")[len(POLICY):])
    assert is_empty(client, bucket)


def test_escapes_of_policies(form, raw, client, bucket):
    form.fields.update({"key": "$k", "x-other": "a\x0bb"})
    conditions = [{name: value} for name, value in (("bucket", bucket),)]
    form.version = 2
    form.policy = (json.dumps({"expiration": END, "conditions": conditions})[:-2]
                   + r', ["eq", "\$key", "\$k"], {"x-other": "a\vb"}]}')
    assert form.post(raw).status == 204
    assert stored(client, bucket, "$k") == CONTENT


@pytest.mark.parametrize("low, high, size, expected", [
    (5, 10, 4, (400, "EntityTooSmall")), (5, 10, 5, None), (5, 10, 10, None), (5, 10, 11, (400, "EntityTooLarge")),
    (0, 0, 0, None), (0, 0, 1, (400, "EntityTooLarge")), (9, 3, 5, (400, "EntityTooLarge")),
    (0, 2 << 20, (2 << 20) + 1, (400, "EntityTooLarge")), (3 << 20, 4 << 20, 2 << 20, (400, "EntityTooSmall")),
])
def test_the_length_of_the_file_has_limits(form, raw, client, bucket, low, high, size, expected):
    form.conditions = [["content-length-range", low, high]]
    answer = form.post(raw, file=b"x" * size)
    if expected is None:
        assert answer.status == 204
        return
    assert (answer.status, answer.code()) == expected
    assert "allowed size" in answer.text("Message")
    assert is_empty(client, bucket)
