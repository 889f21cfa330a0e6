import { expect, test } from "bun:test";

import { bunError } from "../../../src/lib/version.ts";

test.each(["1.4.4", "1.4.5", "1.5.0-canary.20270101", "2.0.0"])("accepts Bun %s", (version) => {
  expect(bunError(">=1.4.4", version)).toBeUndefined();
});

test.each(["1.4.3", "1.3.14", "0.8.1"])(
  "rejects Bun %s and names the version to install",
  (version) => {
    expect(bunError(">=1.4.4", version)).toBe(
      `ReviewRelay needs Bun >=1.4.4; this is Bun ${version}. Install Bun 1.4.4, or run \`npx -y bun@1.4.4\` instead of \`bun\`.`,
    );
  },
);
