// Gives the same series of requests to `placeOf` and `advance` of each package: tests/vectors/sequence.json, and random
// ones that a model of sets judges. Runs the block of the guide receiving.md with a database.
import { expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import postgres from "postgres";

import {
  advance,
  type NumberRange,
  type Place,
  placeOf,
  type SequenceState,
  type Step,
} from "../../src/sdk/typescript/src/index.ts";
import { Prng } from "../simulation/prng.ts";
import { fixture } from "../support/fixture.ts";
import { lacks } from "../support/needs.ts";
import { createDatabase } from "../support/postgres.ts";
import { PACKAGES, runProgram, SDK } from "../support/processes/packages.ts";

const database = fixture(createDatabase);

const LANGUAGES = [
  { name: "TypeScript", needs: [], run: runInTypescript },
  ...PACKAGES.map((one) => ({
    ...one,
    run: (input: Input) => runProgram<Output>(one, PROGRAMS[one.name], input),
  })),
];

for (const { name, needs, run } of LANGUAGES) {
  const title = `the package in ${name} finds what was missed, and what is repeated`;
  test.skipIf(lacks(...needs))(title, async () => {
    const { places, series } = await run({ places: headers, series: cases });
    expect(places).toEqual(vectors.places.map(([, place]) => place));
    expect(cases.map((one, i) => ({ ...one, ...series[i] }))).toEqual(cases);
  });
}

test("a step leaves the state that it is given as it is", () => {
  const frozen: SequenceState = Object.freeze({
    settled: 4,
    received: Object.freeze([Object.freeze([6, 6] as const)]),
    missed: Object.freeze([Object.freeze([2, 3] as const)]),
    earlier: Object.freeze([Object.freeze([1, 1] as const)]),
  });
  for (const sequence of [1, 2, 3, 5, 7])
    expect(advance(frozen, { sequence, settled: 9 }).state.settled).toBe(9);
});

test("a state may have 100,000 ranges", () => {
  const received = Array.from({ length: 100_000 }, (_, i): NumberRange => [2 * i + 2, 2 * i + 2]);
  const state = { settled: 0, received, missed: [], earlier: [] };
  const { missed } = advance(state, { sequence: 200_002, settled: 200_001 });
  expect([missed.length, missed.at(-1)]).toEqual([100_001, [200_001, 200_001]]);
});

test("the block of the guide keeps account of requests that come at the same time", async () => {
  const folder = mkdtempSync(join(tmpdir(), "guide-"));
  const sql = postgres(database.url, { max: 8 });
  try {
    await sql`create table subscriptions (id text primary key, state jsonb)`;
    const path = join(folder, "receive.ts");
    writeFileSync(path, receiverWith(guideBlock()));
    const { receive }: { receive: Receive } = await import(path);
    const ask = (headers: Record<string, string>, save = async () => {}) =>
      receive({ sql, id: "one", request: { headers }, event: {}, save });
    const sent = upTo(100).filter((one) => ![3, 4, 50, 99].includes(one));
    const shuffled = new Prng(7).shuffled(sent).map((sequence) => ({ sequence, settled: 0 }));
    const answers = await Promise.all(shuffled.map((place) => ask(headersOf(place))));
    expect(answers.flat()).toEqual([]);
    expect(await ask({ "x-svc-event": "webhook.test" })).toEqual([]);
    const missed: NumberRange[] = [
      [3, 4],
      [50, 50],
      [99, 99],
    ];
    expect(await ask(headersOf({ sequence: 101, settled: 100 }))).toEqual(missed);
    const [row] = await sql`select state from subscriptions`;
    expect(row?.["state"]).toEqual({ settled: 100, received: [[101, 101]], missed, earlier: [] });
    // A rolled back transaction has received nothing: its repetition is the first one.
    const last = headersOf({ sequence: 103, settled: 102 });
    const fails = ask(last, () => Promise.reject(new Error("The handler fails.")));
    await expect(fails).rejects.toThrow("The handler fails.");
    expect(await ask(last)).toEqual([[102, 102]]);
  } finally {
    await sql.end();
    rmSync(folder, { recursive: true, force: true });
  }
});

/** What a request shows, besides the state. */
type Shown = Omit<Step, "state">;
type Series = { readonly start: SequenceState | null; readonly steps: readonly Place[] };
/** A series with the expected results. */
interface Judged extends Series {
  readonly name: string;
  readonly steps: readonly (Place & Shown)[];
  readonly state: SequenceState;
}

interface Input {
  readonly places: readonly Readonly<Record<string, string>>[];
  readonly series: readonly Series[];
}
interface Output {
  readonly places: readonly (Place | null)[];
  readonly series: readonly Omit<Judged, "name" | "start">[];
}

type Receive = (given: {
  readonly sql: postgres.Sql;
  readonly id: string;
  readonly request: { readonly headers: Readonly<Record<string, string>> };
  readonly event: object;
  readonly save: () => Promise<void>;
}) => Promise<readonly NumberRange[]>;

async function runInTypescript({ places, series }: Input): Promise<Output> {
  return {
    places: places.map((one) => placeOf(one)),
    series: series.map(({ start, steps }) => {
      let state = start;
      const shown = steps.map((place) => {
        const step = advance(state, place);
        // A store keeps text.
        state = JSON.parse(JSON.stringify(step.state));
        return { ...place, missed: step.missed, repeat: step.repeat, filled: step.filled };
      });
      return { steps: shown, state: state ?? NOTHING };
    }),
  };
}

/** Returns a series of places, each of which may be impossible in practice, with the results of a model. */
function randomSeries(seed: number): Judged {
  const random = new Prng(seed);
  const top = random.int(5, 45);
  const places = Array.from({ length: 40 }, () => ({
    sequence: random.int(1, top),
    settled: random.int(0, top),
  }));
  const start = seed % 2 === 0 ? null : NOTHING;
  const first = start?.settled ?? places[0]?.settled ?? 0;
  const model = { settled: first, received: new Set<number>(), missed: new Set<number>() };
  const earlier = new Set(upTo(first));
  const steps = places.map(({ sequence, settled }) => {
    const filled = model.missed.delete(sequence);
    const repeat = model.received.has(sequence);
    model.received.add(sequence);
    earlier.delete(sequence);
    const missed = new Set(
      upTo(settled).filter((one) => one > model.settled && !model.received.has(one)),
    );
    for (const one of missed) model.missed.add(one);
    model.settled = Math.max(model.settled, settled);
    return { sequence, settled, missed: rangesOf(missed), repeat, filled };
  });
  const above = [...model.received].filter((one) => one > model.settled);
  const state = {
    settled: model.settled,
    received: rangesOf(above),
    missed: rangesOf(model.missed),
    earlier: rangesOf(earlier),
  };
  return { name: `random series ${seed}`, start, steps, state };
}

const upTo = (last: number) => Array.from({ length: last }, (_, i) => i + 1);

function rangesOf(numbers: Iterable<number>): NumberRange[] {
  const all = new Set(numbers);
  const firsts = [...all].filter((one) => !all.has(one - 1)).toSorted((a, b) => a - b);
  const lasts = [...all].filter((one) => !all.has(one + 1)).toSorted((a, b) => a - b);
  return firsts.map((first, i) => [first, lasts[i] ?? first]);
}

const headersOf = ({ sequence, settled }: Place) => ({
  "x-svc-sequence": String(sequence),
  "x-svc-settled": String(settled),
});

function guideBlock(): string {
  const guide = readFileSync(join(import.meta.dir, "../../src/docs/guides/receiving.md"), "utf8");
  const [, block = ""] =
    /^```ts not-run tests\/shipping\/packages-sequence[^\n]*\n([\s\S]*?)^```$/m.exec(guide) ?? [];
  return block;
}

const receiverWith = (block: string) => `
import { advance, placeOf } from ${JSON.stringify(join(SDK, "typescript/src/index.ts"))};
export async function receive({ sql, id, request, event, save }) {
${block}
return missed;
}
`;

const NOTHING: SequenceState = { settled: 0, received: [], missed: [], earlier: [] };

const vectors: {
  readonly places: readonly (readonly [Readonly<Record<string, string>>, Place | null])[];
  readonly series: readonly Judged[];
} = JSON.parse(readFileSync(join(import.meta.dir, "../vectors/sequence.json"), "utf8"));
const headers = vectors.places.map(([given]) => given);
const cases = [...vectors.series, ...Array.from({ length: 300 }, (_, seed) => randomSeries(seed))];

const PYTHON = `
import json, sys
from reviewrelay import advance, place_of

def run(one):
    state, steps = one["start"], []
    for place in one["steps"]:
        step = advance(state, place)
        state = json.loads(json.dumps(step.pop("state")))
        steps.append({"sequence": place["sequence"], "settled": place["settled"], **step})
    return {"steps": steps, "state": state}

given = json.load(sys.stdin)
places = [place_of(headers) for headers in given["places"]]
print(json.dumps({"places": places, "series": [run(one) for one in given["series"]]}))
`;

const PHP = `
use ReviewRelay\\Sequence;

$given = json_decode(file_get_contents('php://stdin'), true);
$places = array_map(Sequence::placeOf(...), $given['places']);
$series = array_map(function ($one) {
    $state = $one['start'];
    $steps = [];
    foreach ($one['steps'] as ['sequence' => $sequence, 'settled' => $settled]) {
        $place = ['sequence' => $sequence, 'settled' => $settled];
        ['state' => $state, 'missed' => $missed, 'repeat' => $repeat, 'filled' => $filled]
            = Sequence::advance($state, $place);
        $state = json_decode(json_encode($state), true);
        $steps[] = $place + ['missed' => $missed, 'repeat' => $repeat, 'filled' => $filled];
    }
    return ['steps' => $steps, 'state' => $state];
}, $given['series']);
echo json_encode(['places' => $places, 'series' => $series]);
`;

const GO = `package main

import (
	"encoding/json"
	"net/http"
	"os"

	"reviewrelay"
)

type Step struct {
	Sequence int64                     \`json:"sequence"\`
	Settled  int64                     \`json:"settled"\`
	Missed   []reviewrelay.NumberRange \`json:"missed"\`
	Repeat   bool                      \`json:"repeat"\`
	Filled   bool                      \`json:"filled"\`
}

type Series struct {
	Start *reviewrelay.SequenceState \`json:"start,omitempty"\`
	Steps []Step                     \`json:"steps"\`
	State *reviewrelay.SequenceState \`json:"state"\`
}

type Place struct {
	Sequence int64 \`json:"sequence"\`
	Settled  int64 \`json:"settled"\`
}

func main() {
	var given struct {
		Places []map[string]string
		Series []Series
	}
	if err := json.NewDecoder(os.Stdin).Decode(&given); err != nil {
		panic(err)
	}
	places := make([]*Place, len(given.Places))
	for i, headers := range given.Places {
		header := http.Header{}
		for name, value := range headers {
			header.Set(name, value)
		}
		if place := reviewrelay.PlaceOf(header); place != nil {
			places[i] = &Place{place.Sequence, place.Settled}
		}
	}
	for i, one := range given.Series {
		state := one.Start
		given.Series[i].Start = nil
		for j, place := range one.Steps {
			step := reviewrelay.Advance(state, reviewrelay.Place{Sequence: place.Sequence, Settled: place.Settled})
			one.Steps[j] = Step{place.Sequence, place.Settled, step.Missed, step.Repeat, step.Filled}
			text, err := json.Marshal(step.State)
			if err != nil {
				panic(err)
			}
			state = nil
			if err := json.Unmarshal(text, &state); err != nil {
				panic(err)
			}
		}
		given.Series[i].State = state
	}
	output := map[string]any{"places": places, "series": given.Series}
	if err := json.NewEncoder(os.Stdout).Encode(output); err != nil {
		panic(err)
	}
}
`;

const PROGRAMS = { Python: PYTHON, PHP, Go: GO };
