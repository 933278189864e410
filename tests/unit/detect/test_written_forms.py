"""Ways in which code, settings and commands write a credential down, beside look-alikes that hold none."""

from __future__ import annotations

import pytest

from gateway.context.findings import Category, ScanItem
from gateway.detect.engine import Engine, build

WRITTEN = (
    (
        " user | password   | host\n------+------------+-----\n app  | Walnut#88xQ | db\n bob  | Tundra!19zz | db\n",
        "Tundra!19zz",
    ),
    (
        "+------+-------------+\n| user | password    |\n+------+-------------+\n| app  | Walnut#88xQ |\n| bob  | Tundra!19zz |\n+------+-------------+\n",
        "Walnut#88xQ",
    ),
    ("ENV['DB_PASSWORD'] ||= 'Vq7#mLp2lIeiUg'", "Vq7#mLp2lIeiUg"),
    ("config.apiKey ??= 'a33e4ed9e6f8ddaf3b158f6e75c443d9'", "a33e4ed9e6f8ddaf3b158f6e75c443d9"),
    ("kind: Secret\ndata:\n  user: aGFyYm91cg==\n", "aGFyYm91cg=="),
    (
        "kind: Secret\nstringData:\n  a.conf: |\n    user svc zeb7CKbU\nmetadata:\n  name: x\n",
        "user svc zeb7CKbU",
    ),
    ("kind: Secret\ndata:\n  k: >-\n    c2VjcmV0LWFuZ\n    C1sb25nZXI=\n", "C1sb25nZXI="),
    ('create_engine("mysql+pymysql://svc:WNOhkI^cKN3Dy@db/app")', "WNOhkI^cKN3Dy"),
    ("jdbc:oracle:thin:svc/kx^kpi3cFcwAI@//db.corp.io:1521/XE", "kx^kpi3cFcwAI"),
    (
        "Set-Cookie: session=KXMVZ-pj5XvDx0UgMnM9TcG0rgCLDfB_Lr; HttpOnly",
        "KXMVZ-pj5XvDx0UgMnM9TcG0rgCLDfB_Lr",
    ),
    ("requests.get(u, auth=('admin', 'gr33nbay'))", "gr33nbay"),
    ('new UsernamePasswordCredentials("user", "foobar42")', "foobar42"),
    ("db_password, Harbor#copper88", "Harbor#copper88"),
    ("user,password\nDB_PASSWORD, Harbor#copper88", "Harbor#copper88"),
    ("password,Harbor#copper88", "Harbor#copper88"),
    ('DriverManager.getConnection(url, "root", "Passw0rd!")', "Passw0rd!"),
    ("mysql -u root -proot1234 erp < dump.sql", "root1234"),
    ("redis-cli -a sup3rs3cr3t ping", "sup3rs3cr3t"),
    ("--password=changeit1 --host db", "changeit1"),
    ("$ ./deploy --db-passwd Ndg5rYOeD246 --yes", "Ndg5rYOeD246"),
    ("userPassword: kafka_pw1\n", "kafka_pw1"),
    ("storePassword=hunter2\n", "hunter2"),
    ('keystorePass="sup3rs3cr3t"', "sup3rs3cr3t"),
    ('var pass = "admin123"', "admin123"),
    ("JENKINS_PASS: welcome1\n", "welcome1"),
    ("user=sa;password=Passw0rd!;timeout=3", "Passw0rd!"),
    ("Provider=SQLOLEDB;Server=s;UID=a;PWD=MogPEjdGNAAnHI", "MogPEjdGNAAnHI"),
    ("Data Source=.;Database=x;Uid=app;Pwd=UwvEuzQf3rM7g.NV_-.;", "UwvEuzQf3rM7g.NV_-."),
    ("rootPassword: nlmcvriqfutmsf\n", "nlmcvriqfutmsf"),
    ('const OKTA_TOKEN: &str = "00q0BczxK9tCdNYeBBZUQhPraGWwtpwCIXYkeAiEd-";', "00q0BczxK9tCdNYeBBZUQh"),
    (
        'public string ServiceToken { get; set; } = "0d0f9dbcb2f760a805450ea20ff3b7c177186eb3cc7";',
        "0d0f9dbcb2",
    ),
    ("- **refreshToken**: `4gnA1m3zchdyObZ3MB4LUmNr`", "4gnA1m3zchdyObZ3MB4LUmNr"),
    ("airbrake_key: 'idthxzcHFP2pr-YolxUbZxrv_IysJQllSJ4fTeY0QYi'", "idthxzcHFP2pr"),
    ('const edamamKey = "5aefa4596e78f4b30a633a0e4edb60b9";', "5aefa4596e78f4b30a633a0e4edb60b9"),
    ("X-Codacy-Key: 0b56b4e0cf262262c527320141b11449552fc868", "0b56b4e0cf262262c5"),
    ("wepay token - 't8Z82xdJc96oW69TA2TvKJWF787C97Ti'", "t8Z82xdJc96oW69TA2TvKJWF787C97Ti"),
    ("the api key is KnHr0B6QGHwsZxqGKzf1F1uNbl92u0AbMzbplcD2", "KnHr0B6QGHwsZxqGKzf1F1uNbl92u0AbMzbplcD2"),
    ("Authorization: apikey YgpFFNCseofinIk1K2Kbz3SCcwiqD5G3", "YgpFFNCseofinIk1K2Kbz3SCcwiqD5G3"),
    ("log in as admin with password Thunder2019 and restart", "Thunder2019"),
    ('accountkey := "dZMEwNLh0xqZgxBM5noeGiDje4t3XXoIkvyWthWFe3IkLiPfvcE5oy6W9fkINpGP"', "dZMEwNLh0xqZ"),
    ('sshpass -p"Rocket!Man9" ssh h', "Rocket!Man9"),
    ('conn_str = "host=h user=u password=Rocket!Man9 dbname=d"', "Rocket!Man9"),
    ('ldap.simple_bind_s("cn=a", "Tundra#1x")', "Tundra#1x"),
    ("keytool -storepass Tundra#1x -alias a", "Tundra#1x"),
    ("the root password on that box is Kraken44", "Kraken44"),
    ('{"password": "Xk\\"29fjt8WhAS#", "n": 1}', 'Xk\\"29fjt8WhAS#'),
    (r"{\"password\": \"Xk\\\"29fjt8WhAS#\", \"n\": 1}", r"Xk\\\"29fjt8WhAS#"),
    ("PASSWORD='Xk29\\'fjt8WhAS'", "Xk29\\'fjt8WhAS"),
    (r'password = "Xk29fjt8WhAS\\"; x = "a"', "Xk29fjt8WhAS"),
    ("user,password\nbob,Tundra#1x\neve,-\n", "Tundra#1x"),
    ("id;client_secret;owner\n4;edacb6c19ae19a86b939f6249eeb55b4;eve\n", "edacb6c19ae19a86b939f6249eeb55b4"),
    ('"name","api_key"\n"eu, west","4gnA1m3zchdyObZ3MB4LUmNr"\n', "4gnA1m3zchdyObZ3MB4LUmNr"),
    ("| host | api key |\n|---|---|\n| db1 | `4gnA1m3zchdyObZ3MB4LUmNr` |\n", "4gnA1m3zchdyObZ3MB4LUmNr"),
    ('<input value="4gnA1m3zchdyObZ3MB4LUmNr" name="api_token">', "4gnA1m3zchdyObZ3MB4LUmNr"),
    ('value="4gnA1m3zchdyObZ3MB4LUmNr" data-x="{" name="api_token"', "4gnA1m3zchdyObZ3MB4LUmNr"),
    ('{value="4gnA1m3zchdyObZ3MB4LUmNr" x={ id="api_token"', "4gnA1m3zchdyObZ3MB4LUmNr"),
    ('{"value": "4gnA1m3zchdyObZ3MB4LUmNr", "name": "api_token"}', "4gnA1m3zchdyObZ3MB4LUmNr"),
    ("set 'Tr0ub4`dorX3xQ9' to db_password", "Tr0ub4`dorX3xQ9"),
    ('{"value": "4gnA1m3zchdyObZ3MB4LUmNr", "key": "API_TOKEN"}', "4gnA1m3zchdyObZ3MB4LUmNr"),
    ("- value: 4gnA1m3zchdyObZ3MB4LUmNr\n  name: API_TOKEN\n", "4gnA1m3zchdyObZ3MB4LUmNr"),
    ("use `4gnA1m3zchdyObZ3MB4LUmNr` as the access token", "4gnA1m3zchdyObZ3MB4LUmNr"),
    ("APP_SECRET=qhzkxwvbjpfdrgtnmlcsqxzjvkwbphdg\n", "qhzkxwvbjpfdrgtnmlcsqxzjvkwbphdg"),
    ("client_secret: QhzKxwvBjpFdrgTnmlCsqxZjvkWbphDg\n", "QhzKxwvBjpFdrgTnmlCsqxZjvkWbphDg"),
    ('db_password = "onyx-piano-rocket-saddle"', "onyx-piano-rocket-saddle"),
    ("license key: \u201c4gnA1m3zchdyObZ3MB4LUmNr\u201d", "4gnA1m3zchdyObZ3MB4LUmNr"),
    ('ldapBindPw: "Violin8043?"', "Violin8043?"),
    ('password = "super$ecret"', "super$ecret"),
    ('TOKEN="${TOKEN:-I1yVx4JV9YQQ_b4PYQv4V_FdDTY2LVnb}"', "I1yVx4JV9YQQ_b4PYQv4V_FdDTY2LVnb"),
    ("Set `SMTP_PASS` to `Ember.raven510` before starting.", "Ember.raven510"),
    ("ok so the refresh token is: RZkRg3zgE8KXC5hc3HJ40tV_vXVxMEzP", "RZkRg3zgE8KXC5hc3HJ40tV_vXVxMEzP"),
    ('CREDS = ("svc-batch", "Xb69+1X0lqEtRRnhHBsSD")', "Xb69+1X0lqEtRRnhHBsSD"),
    ("sqlplus -S scott/Lx8s.d7BlVR@orcl", "Lx8s.d7BlVR"),
    ("- default: 4gnA1m3zchdyObZ3MB4LUmNr\n  name: API_TOKEN\n", "4gnA1m3zchdyObZ3MB4LUmNr"),
)

LOOKALIKE = (
    "kind: SecretStore\ndata:\n  user: aGFyYm91cg==\n",
    "kind: Secret\nmetadata:\n  name: harbour\n  labels: {app: web}\n",
    "IBAN of every textbook: DE89370400440532013000, GB82 WEST 1234 5698 7654 32",
    'password = ask_password("Password: ")',
    "--> 'user[:passwd]', 'host[:port]'.",
    '(replaceEnvironmentVariable(password), "base64").toString("utf8")',
    "private_key: x25519.X25519PrivateKey\n",
    '"MLKEM768X25519PrivateKey",\n    "MLKEM768X25519PublicKey",',
    '"SERVER_TRAFFIC_SECRET_0",\n        "CLIENT_TRAFFIC_SECRET_0",',
    '("secret", base64.b32encode(hotp._key)),',
    "return a dynamic library identified by 'name'.",
    "password=%DB_PASS%\n",
    "SECRET=projects/123/secrets/db/versions/1\n",
    "password: vault:secret/data/db#password\n",
    "connect(user=u, password=pw1, host=h)",
    "password: this.form.value.password1",
    'cache_key = "3f8a1c0e9b7d2f46513a8c0d9e7b6f25"',
    'const primaryKey = "8e2c9b0f4a7d1e6c3b5a9f8d7c6e5b4a";',
    "auth=(user, password)",
    'client.login("alice", "password")',
    "redis-cli -a $REDIS_PW ping",
    'e.key === "Escape" || lastKey = "ArrowLeftThenRight"',
    'password = "Enter 8+ characters"',
    "password: !vault |\n",
    'getCredentials("aws", "us-east-1")',
    'new Connection("amqp", "queue1")',
    "?key=home-page-banner-text-en-us-2024",
    "'userPassword', 'RFC4519'),",
    "passwd: HTTPPasswordMgr\n",
    '=info.get("refresh_token"),\n            token_uri=_GOOGLE_OAUTH2_TOKEN_ENDPOINT,',
    "https://jo%40email.com:a%20secret@www.example.com/x",
    'EXTENDED_KEY_USAGE = ObjectIdentifier("2.5.29.37")',
    "token,region,count\nnone,eu-west-1,4\n",
    "def login(user, password, token):\n    return user, password, token\n",
    "| token | meaning |\n|---|---|\n| `--max-tokens` | upper bound of 4096 |\n",
    '<input value="submit-the-form" name="token_action">',
    "secret_class: NamespaceAwareSecretResolver\n",
    "token: InternationalizationConfigurationProvider\n",
    'password = "must-not-be-left-empty"',
    'password: "wrong-email-or-password"',
    "password=first-second-third",
    "ANY_KEY = ZHVtbXkgdGV4dCBkYXRhIGRhdGEgZGF0YQ==",
    'server = alloc();\nserver->user = "anonymous";\nserver->password = "busybox@";',
    "Get a token:\n\nidentifiers come next",
    "// 3. basic auth, username:password, base64 encoded",
    "41545296974935 41.3280 711376\n3746685899907266 20.4608 4",
)


@pytest.fixture(scope="module")
def engine() -> Engine:
    return build()


@pytest.mark.parametrize(("text", "value"), WRITTEN, ids=range(len(WRITTEN)))
def test_written_credential_is_found_whole(engine: Engine, text: str, value: str) -> None:
    found = [f for f in engine.scan([ScanItem(text)])[0].findings if f.category is Category.SECRET]
    start = text.index(value)
    assert any(f.start <= start and f.end >= start + len(value) for f in found)


@pytest.mark.parametrize("text", LOOKALIKE, ids=range(len(LOOKALIKE)))
def test_lookalike_is_left_alone(engine: Engine, text: str) -> None:
    found = engine.scan([ScanItem(text)])[0].findings
    assert [f.type for f in found if f.category in {Category.SECRET, Category.PII}] == []


DISGUISED = (
    "one:\ngsk_62wHRaJZrdiDPQEcmLMfWGdy\nb3FYS2DUgKoclSM0pngCzbkWU1zH\nthat is all",
    "AKIA2CED\nVVAOWLG2\n2J3P\n",
    "part:\nsk_live_5156ACE4B7y1JXxUiPCco3uzRqfMDdPs5OpFI5CkZ4GOk\n4ymyuSFpwf5HmYExggnUtAwwD5iY3lahw2CvV\nend of it",
    "0x73687063615F6435353733623263613630636365386631393433373233663537333532633937",
    '"".join(["gho_MONxm", "MfH5TX8qO", "SjeUeyxHw", "poeE4dY1M", "B0YS"])',
    "const k = ['sk_live_51', 'YJtWL0rb', '9cwzpHfr', 'g9vnQx2'].join('')",
    "it: T C B M P D 4 4 M 1 0 A 8 8 8 J done",
)


@pytest.mark.parametrize("text", DISGUISED, ids=range(len(DISGUISED)))
def test_disguised_datum_is_covered(engine: Engine, text: str) -> None:
    lines = text.splitlines()
    found = [
        f for f in engine.scan([ScanItem(text)])[0].findings if f.category in {Category.SECRET, Category.PII}
    ]
    assert found
    if len(lines) > 2:  # the second part too
        assert any(f.end >= text.index(lines[-2]) + len(lines[-2]) for f in found)
