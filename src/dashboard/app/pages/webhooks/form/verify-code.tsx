import { Anchor, Button, Stack, Tabs, Text } from "@mantine/core";
import { type QueryClient, useMutation } from "@tanstack/react-query";

import { VERIFY_SNIPPETS } from "../../../api/verify-snippets.ts";
import { CodeBlock, SecretField } from "../../../ui/copy.tsx";
import { ErrorNotice } from "../../../ui/states.tsx";
import { type Secrets, useSubscriptionActions } from "../data/use-subscription-actions.ts";

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

interface SecretProps {
  readonly id: string;
  /** Signing secret that was just created; absent otherwise. */
  readonly fresh?: Secrets;
}

interface SecretFormsProps {
  readonly label: string;
  readonly secrets: Secrets;
}

/** Shows a secret, and below it the form that libraries of Standard Webhooks take, if the subscription asks for it. */
export function SecretForms({ label, secrets }: SecretFormsProps) {
  const { secret, standard_webhooks_secret: standard } = secrets;
  return (
    <Stack gap="xs" className="takes-line">
      <SecretField label={label} value={secret} />
      {standard !== null && (
        <SecretField label={`${label} for Standard Webhooks`} value={standard} />
      )}
    </Stack>
  );
}

/**
 * Shows the signing secret: immediately after its creation, otherwise on request, because the API writes each
 * read into the audit log.
 */
export function Secret({ id, fresh }: SecretProps) {
  const { readSecret } = useSubscriptionActions(id);
  const { data: secrets = fresh, mutate, error } = useMutation({ mutationFn: readSecret });
  if (secrets !== undefined) return <SecretForms label="Secret" secrets={secrets} />;
  return (
    <Stack gap="xs" align="flex-start">
      <Button variant="default" onClick={() => mutate()}>
        Get the secret
      </Button>
      {error !== null && <ErrorNotice error={error} />}
    </Stack>
  );
}

const keyOf = (id: string) => ["webhooks", "fresh-secret", id];

/**
 * Stores a new signing secret in the memory of the page until the page shows it. A reload or a sign-out drops
 * the secret.
 */
export function keepSecrets(client: QueryClient, id: string, secrets: Secrets): void {
  client.setQueryData(keyOf(id), secrets);
}

export function freshSecrets(client: QueryClient, id: string): Secrets | undefined {
  return client.getQueryData<Secrets>(keyOf(id));
}
