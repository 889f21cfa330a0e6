import { Anchor, Tabs, Text } from "@mantine/core";

import { CodeBlock } from "../../ui/copy.tsx";
import { VERIFY_SNIPPETS } from "../../api/verify-snippets.ts";

export function VerifyCode() {
  return (
    <div>
      <Text size="sm" mb="xs">
        Check <code>X-SVC-Signature</code> over the body exactly as it arrived, before parsing it.
        Answer 401 if it does not fit. The guide{" "}
        <Anchor href="/docs/verifying" target="_blank" inherit underline="always">
          Verifying
        </Anchor>{" "}
        says more.
      </Text>
      <Tabs defaultValue={VERIFY_SNIPPETS[0]?.language ?? ""} keepMounted={false}>
        <Tabs.List>
          {VERIFY_SNIPPETS.map(({ language }) => (
            <Tabs.Tab key={language} value={language}>
              {language}
            </Tabs.Tab>
          ))}
        </Tabs.List>
        {VERIFY_SNIPPETS.map(({ language, file, code }) => (
          <Tabs.Panel key={language} value={language} pt="xs">
            <CodeBlock label={file} code={code.trim()} />
          </Tabs.Panel>
        ))}
      </Tabs>
    </div>
  );
}
