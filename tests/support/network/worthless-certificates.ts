// Certificates that a client must reject for the name hook.test, and one that it must accept. They were made for the
// attack tests. Unless a comment says otherwise, they share one key and are valid from 2020 to 2120.

/** The authority that signed each certificate without a comment about its issuer. */
export const ROOT = `-----BEGIN CERTIFICATE-----
MIIBLzCB1qADAgECAgFlMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAWMRQwEgYDVQQD
DAthdHRhY2sgcm9vdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABEHR862k64DC
jGUL23ZdalAGFiibLYWxUcLchV1pyDzT21Q3F6nlbTQJ7o7bQUDBqi+j7OAwDUII
HBOfERBdmM6jEzARMA8GA1UdEwEB/wQFMAMBAf8wCgYIKoZIzj0EAwIDSAAwRQIg
Qyevjabmwh4oTxLU+ALSpY+Px2DXIEbNhuUaW5NYFrMCIQCyHRQzd568E3oT066z
BqWaMVnnjRlEowIngHhuSTK8Xw==
-----END CERTIFICATE-----`;

const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg2K9RX0FI+MiecImd
hIsM1STZ/WblXTXWWpdpjCzaG3mhRANCAARTUbluR42HwanSNO9Eg472thgAQBzD
mItK7l7XHeKLFWMFdKCVhGypwar5Ic30EveFLHiek3s2XL5gSePtU7gr
-----END PRIVATE KEY-----`;

/** A valid certificate, signed by the intermediate authority `MIDDLE`. */
export const LEAF_ALONE = `-----BEGIN CERTIFICATE-----
MIIBJzCBz6ADAgECAgFoMAoGCCqGSM49BAMCMBExDzANBgNVBAMMBm1pZGRsZTAg
Fw0yMDAxMDEwMDAwMDBaGA8yMTIwMDEwMTAwMDAwMFowDzENMAsGA1UEAwwEaG9v
azBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABFNRuW5HjYfBqdI070SDjva2GABA
HMOYi0ruXtcd4osVYwV0oJWEbKnBqvkhzfQS94UseJ6TezZcvmBJ4+1TuCujGDAW
MBQGA1UdEQQNMAuCCWhvb2sudGVzdDAKBggqhkjOPQQDAgNHADBEAiBCsrBfLvX3
xIQYgKubZ7UtsJqecS+0Rjlp1IuwzlZR3wIgK4wMovYbqQAHbiK6yWivNqguoXpS
a/1tilWqaow4g98=
-----END CERTIFICATE-----`;

const MIDDLE = `-----BEGIN CERTIFICATE-----
MIIBKjCB0aADAgECAgFmMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjARMQ8wDQYDVQQD
DAZtaWRkbGUwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAAQwzxnQAlQzGqyzSwao
Vtav92NXPUoqdTMYi+rR1iYaE+J7G/AMjwzJlmd3io+MH5UAj2+L92qf0kcPWz+D
LrcnoxMwETAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIGGW7NTz
pQUXtzGN0AtK85/3eK5nqAJcQ6FrJx7FB45rAiEAumFB9//UIv6tOzvl8BqRbH+F
sR8OhmkYXWwbG7wVdZU=
-----END CERTIFICATE-----`;

/** A certificate that is valid only from 2119 on. */
export const TOO_EARLY = `-----BEGIN CERTIFICATE-----
MIIBLzCB1qADAgECAgFqMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCIYDzIxMTkwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMA8xDTALBgNV
BAMMBGhvb2swWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARTUbluR42HwanSNO9E
g472thgAQBzDmItK7l7XHeKLFWMFdKCVhGypwar5Ic30EveFLHiek3s2XL5gSePt
U7groxgwFjAUBgNVHREEDTALgglob29rLnRlc3QwCgYIKoZIzj0EAwIDSAAwRQIg
L1l4xwRJXhT+M+cwPol3Yg2I+wrp6iMGyRsytqENTncCIQD/Zr3phKdflUK99caq
DQN0DcpCEkqPzbtefcIbJPHPnA==
-----END CERTIFICATE-----`;

/** A certificate of leaf.test that is no authority and must sign nothing. */
const LEAF = `-----BEGIN CERTIFICATE-----
MIIBOjCB4qADAgECAgFrMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAPMQ0wCwYDVQQD
DARsZWFmMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEtyKFoyX+jVANuY9qwnVT
8g24Ul9USU5fphhPSd7+vu2RjypfIfSzi0l6dW/8IpsnV2RfvS/H2+IxtJnAZN74
gKMmMCQwFAYDVR0RBA0wC4IJbGVhZi50ZXN0MAwGA1UdEwEB/wQCMAAwCgYIKoZI
zj0EAwIDRwAwRAIgKRvk3MjFQSeyJtAgzpCA3+eatzrO8Svazg4JPpiVtcICIBoc
qTbqUpwU2xwpCZ8AQ3xLT8zHX+sfpzscTOaJ7J9p
-----END CERTIFICATE-----`;

/** A certificate that `LEAF` signed, although `LEAF` is no authority. */
const BY_LEAF = `-----BEGIN CERTIFICATE-----
MIIBJzCBzaADAgECAgFsMAoGCCqGSM49BAMCMA8xDTALBgNVBAMMBGxlYWYwIBcN
MjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMA8xDTALBgNVBAMMBGhvb2sw
WTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARTUbluR42HwanSNO9Eg472thgAQBzD
mItK7l7XHeKLFWMFdKCVhGypwar5Ic30EveFLHiek3s2XL5gSePtU7groxgwFjAU
BgNVHREEDTALgglob29rLnRlc3QwCgYIKoZIzj0EAwIDSQAwRgIhALA0mbozprHC
xhzDx6dQL6D8DCs0PLZgb3ZvJIVWqNrGAiEA/m88wCDH1cENvRgJ4Ym5rcAObMlM
yQAHchhEBoUNIGw=
-----END CERTIFICATE-----`;

/** An authority with name constraints: it may sign only names below example.test. */
const BOUNDED = `-----BEGIN CERTIFICATE-----
MIIBSzCB8qADAgECAgFnMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjASMRAwDgYDVQQD
DAdib3VuZGVkMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEvKiR5OvKnNuLE/qX
zFY3yVEasx6fhgYDPHGOQC8FrL6XU25wwfoMTJ1TgDaoYKhUKJD9yPCqffhWIJx5
KZWpKaMzMDEwDwYDVR0TAQH/BAUwAwEB/zAeBgNVHR4BAf8EFDASoBAwDoIMZXhh
bXBsZS50ZXN0MAoGCCqGSM49BAMCA0gAMEUCIAUIuS7dAeswE2u5wxP6WTHpd+g0
uA7SmPSpRY9+g7DIAiEA141atnLuAMt36bvTnra9a9JRzGZ7yhp8WZMGLi/5to0=
-----END CERTIFICATE-----`;

/** A certificate of hook.test, signed by `BOUNDED` against its name constraints. */
const OUT_OF_BOUNDS = `-----BEGIN CERTIFICATE-----
MIIBKDCB0KADAgECAgFtMAoGCCqGSM49BAMCMBIxEDAOBgNVBAMMB2JvdW5kZWQw
IBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMA8xDTALBgNVBAMMBGhv
b2swWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARTUbluR42HwanSNO9Eg472thgA
QBzDmItK7l7XHeKLFWMFdKCVhGypwar5Ic30EveFLHiek3s2XL5gSePtU7groxgw
FjAUBgNVHREEDTALgglob29rLnRlc3QwCgYIKoZIzj0EAwIDRwAwRAIgT2F9TGwl
PyLY99XCKVts/8a5Rl5Ad2rMDw+L35+bsnECIE467jAdz0jiut2dQ0WO6DGDcjQb
vCUy5mGiCCfuqAK2
-----END CERTIFICATE-----`;

/** A certificate with the extended key usage of clients, not of servers. */
const FOR_CLIENTS = `-----BEGIN CERTIFICATE-----
MIIBQTCB6aADAgECAgFuMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAPMQ0wCwYDVQQD
DARob29rMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEU1G5bkeNh8Gp0jTvRIOO
9rYYAEAcw5iLSu5e1x3iixVjBXSglYRsqcGq+SHN9BL3hSx4npN7Nly+YEnj7VO4
K6MtMCswFAYDVR0RBA0wC4IJaG9vay50ZXN0MBMGA1UdJQQMMAoGCCsGAQUFBwMC
MAoGCCqGSM49BAMCA0cAMEQCIBcUrmcAVmC+yn5C+XEEUE8Ni5i1i0jRn96f8iVk
XGDTAiAYag0DOomibQZwcbI/hflJrW4zatvwvGrqBM4gAy+uNA==
-----END CERTIFICATE-----`;

/** A certificate with its name only in the subject, as before subject alternative names existed. */
const COMMON_NAME = `-----BEGIN CERTIFICATE-----
MIIBGTCBv6ADAgECAgFvMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAUMRIwEAYDVQQD
DAlob29rLnRlc3QwWTATBgcqhkjOPQIBBggqhkjOPQMBBwNCAARTUbluR42HwanS
NO9Eg472thgAQBzDmItK7l7XHeKLFWMFdKCVhGypwar5Ic30EveFLHiek3s2XL5g
SePtU7grMAoGCCqGSM49BAMCA0kAMEYCIQDOHXk89Shl0ljfYdmZX2/MiHoorHSx
R0kfk/HjF+gpOwIhAL7XWHSg4paz/Clh988SwM4O7FpyfYZkS4epfAfxnUXQ
-----END CERTIFICATE-----`;

/** A wildcard certificate of *.test, a whole top-level domain. */
const TOP_WILDCARD = `-----BEGIN CERTIFICATE-----
MIIBKjCB0aADAgECAgFwMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAPMQ0wCwYDVQQD
DARob29rMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEU1G5bkeNh8Gp0jTvRIOO
9rYYAEAcw5iLSu5e1x3iixVjBXSglYRsqcGq+SHN9BL3hSx4npN7Nly+YEnj7VO4
K6MVMBMwEQYDVR0RBAowCIIGKi50ZXN0MAoGCCqGSM49BAMCA0gAMEUCIQD1QJGH
DkYya6ES5hhbydMa4njwwcX1XG4Cor+cjKB7oQIgVjooGUkIVFCOptmCNxnPndl0
3VMRrADwwd7zMJiR41g=
-----END CERTIFICATE-----`;

/** A certificate of hook.test.evil.test, a name with ours as its prefix. */
const SUFFIX = `-----BEGIN CERTIFICATE-----
MIIBNzCB3qADAgECAgFxMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAPMQ0wCwYDVQQD
DARob29rMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEU1G5bkeNh8Gp0jTvRIOO
9rYYAEAcw5iLSu5e1x3iixVjBXSglYRsqcGq+SHN9BL3hSx4npN7Nly+YEnj7VO4
K6MiMCAwHgYDVR0RBBcwFYITaG9vay50ZXN0LmV2aWwudGVzdDAKBggqhkjOPQQD
AgNIADBFAiEA/YWcwJRx4Ae+a3AXxDkitryTqF9S3dB/ldASCXAtGhwCIFWOUfDJ
TVvoJAvVrgVCU5Nne6ezWz1Tvwp1QrQeh3q9
-----END CERTIFICATE-----`;

/** A certificate of `hook.test\0.evil.test`: a client that stops at the NUL would accept it. */
const NUL = `-----BEGIN CERTIFICATE-----
MIIBNzCB36ADAgECAgFyMAoGCCqGSM49BAMCMBYxFDASBgNVBAMMC2F0dGFjayBy
b290MCAXDTIwMDEwMTAwMDAwMFoYDzIxMjAwMTAxMDAwMDAwWjAPMQ0wCwYDVQQD
DARob29rMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEU1G5bkeNh8Gp0jTvRIOO
9rYYAEAcw5iLSu5e1x3iixVjBXSglYRsqcGq+SHN9BL3hSx4npN7Nly+YEnj7VO4
K6MjMCEwHwYDVR0RBBgwFoIUaG9vay50ZXN0AC5ldmlsLnRlc3QwCgYIKoZIzj0E
AwIDRwAwRAIgRFRwQk++vHloFYGMpFqs5xMSjoAEuPf/knsqrccQCXQCIGeF8olC
gcqxW7q0cbv8NXC5AKEEv2K8r/eGeZ+fcIFn
-----END CERTIFICATE-----`;

const LONG = `${LEAF_ALONE}\n${`${MIDDLE}\n`.repeat(2_000)}`;

/** Certificate chains that a client must reject, by the reason. */
export const WORTHLESS: Readonly<Record<string, string>> = {
  "that is not valid yet": TOO_EARLY,
  "without its intermediate authority": LEAF_ALONE,
  "signed by a certificate that is no authority": `${BY_LEAF}\n${LEAF}`,
  "signed against the name constraints of its authority": `${OUT_OF_BOUNDS}\n${BOUNDED}`,
  "for client authentication only": FOR_CLIENTS,
  "with its name only in the subject": COMMON_NAME,
  "for a wildcard of a top-level domain": TOP_WILDCARD,
  "for a longer name with ours as its prefix": SUFFIX,
  "for a name with a NUL after ours": NUL,
  "with 2,000 copies of its intermediate authority": LONG,
};

/** Builds the TLS options of a server with one of these certificates. */
export const serverOf = (cert: string) => ({ cert, key: KEY });
export const VALID_CHAIN = `${LEAF_ALONE}\n${MIDDLE}`;
