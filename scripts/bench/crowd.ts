// Measures how a burst of failing sign-ins affects others: `bun run bench crowd`. One address sends 500 wrong
// passwords for unknown emails at once, while another address signs in 20 times sequentially, which is compared with
// the time before. Rate limits are off.
import { BASE_PATH } from "../../src/http/access.ts";
import { BENCH_PASSWORD, startAuthRig } from "./auth-rig.ts";
import { bytesOf, LoadConnection, quantile } from "./http-load.ts";
import { writeResult } from "./rig.ts";

const CROWD = 500;
const SIGN_INS = 20;
const ROUNDS = 3;
const RETRY_AFTER_MS = 50;
/** Two addresses of this machine. */
const STRANGER = "127.0.0.2";
const USER = "127.0.0.3";

const login = (email: string, password: string) =>
  bytesOf({ method: "POST", path: `${BASE_PATH}/login`, body: { email, password } });

const rig = await startAuthRig(1);
try {
  const [email = ""] = rig.emails;
  const user = await LoadConnection.open(rig.apiRoot, USER);
  const strangers = await Promise.all(
    Array.from({ length: CROWD }, () => LoadConnection.open(rig.apiRoot, STRANGER)),
  );
  await signIns(user, email);
  const rounds = [];
  for (let i = 0; i < ROUNDS; i++) {
    const quiet = await signIns(user, email);
    const crowd = Promise.all(
      strangers.map((one, n) => one.send(login(`none-${i}-${n}@bench.example`, "wrong"))),
    );
    const crowded = await signIns(user, email);
    const answered = Map.groupBy(await crowd, (status) => status);
    const statuses = [...answered].map(([status, { length }]) => `${length} × ${status}`);
    rounds.push({
      "quiet p50 ms": Math.round(quantile(quiet, 0.5)),
      "crowded p50 ms": Math.round(quantile(crowded, 0.5)),
      ratio: Number((quantile(crowded, 0.5) / quantile(quiet, 0.5)).toFixed(2)),
      "crowded max ms": Math.round(Math.max(...crowded)),
      crowd: statuses.join(", "),
    });
  }
  console.table(rounds);
  console.log(`Written to ${writeResult("crowd", { rounds })}`);
} finally {
  await rig.stop();
}
process.exit(0);

/** Returns the durations of sign-ins; each is retried until it succeeds. */
async function signIns(connection: LoadConnection, email: string): Promise<number[]> {
  const times: number[] = [];
  while (times.length < SIGN_INS) {
    const before = performance.now();
    while ((await connection.send(login(email, BENCH_PASSWORD))) !== 200)
      await Bun.sleep(RETRY_AFTER_MS);
    times.push(performance.now() - before);
  }
  return times;
}
