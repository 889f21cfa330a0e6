import { Button, Group, Modal, Stack, Text, TextInput } from "@mantine/core";
import { useInfiniteQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session.tsx";
import { Confirm } from "../../ui/confirm.tsx";
import { fieldError } from "../../ui/explain.ts";
import { notify } from "../../ui/notify.ts";
import { Section } from "../../ui/section.tsx";
import { EmptyState, ErrorNotice, Loading } from "../../ui/states.tsx";
import { LastUsed, Time } from "../../ui/time.tsx";
import { useSubmit } from "../../ui/use-submit.ts";
import { scopeWords, type Scope } from "./scopes.ts";
import { ScopesField } from "./scopes-field.tsx";
import { ShownOnce } from "./shown-once.tsx";

const PATH = "/account/personal-access-tokens";
const KEY = ["api-tokens"];

export function ApiTokens() {
  const { rows, error, retry, next, refresh } = useApiTokens();
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string>();
  const created = (token: string) => {
    setCreating(false);
    setSecret(token);
    void refresh();
  };
  return (
    <Section
      title="API tokens for a day"
      description="For a job that ends today, such as an import: as many as you like, each with its own scopes. They expire after a day by themselves."
      actions={
        <Button variant="default" onClick={() => setCreating(true)}>
          Create token
        </Button>
      }
    >
      {error !== null && <ErrorNotice error={error} retry={retry} />}
      {error === null && rows === undefined && <Loading />}
      {rows?.length === 0 && (
        <EmptyState icon="key" title="No tokens">
          Create one, give it to the job, and forget it: tomorrow it is gone.
        </EmptyState>
      )}
      {rows !== undefined && rows.length > 0 && <TokenRows rows={rows} onDeleted={refresh} />}
      {next !== undefined && (
        <Group justify="center">
          <Button variant="default" onClick={next}>
            Show older ones
          </Button>
        </Group>
      )}
      <CreateToken opened={isCreating} onClose={() => setCreating(false)} onCreated={created} />
      <ShownOnce
        title="Your new token"
        label="API token"
        secret={secret}
        onClose={() => setSecret(undefined)}
      />
    </Section>
  );
}

function useApiTokens() {
  const api = useApi();
  const cache = useQueryClient();
  const query = useInfiniteQuery({
    queryKey: KEY,
    queryFn: ({ pageParam }) =>
      api.call("GET", PATH, { query: { limit: 20, ...(pageParam && { cursor: pageParam }) } }),
    initialPageParam: "",
    getNextPageParam: (page) => page.next_cursor ?? undefined,
  });
  return {
    rows: query.data?.pages.flatMap((page) => page.data),
    error: query.error,
    retry: () => void query.refetch(),
    next: query.hasNextPage ? () => void query.fetchNextPage() : undefined,
    refresh: () => cache.invalidateQueries({ queryKey: KEY }),
  };
}

type Row = NonNullable<ReturnType<typeof useApiTokens>["rows"]>[number];

function TokenRows({
  rows,
  onDeleted,
}: {
  readonly rows: readonly Row[];
  readonly onDeleted: () => Promise<void>;
}) {
  const api = useApi();
  const [asked, setAsked] = useState<Row>();
  return (
    <>
      <ul className="rows" aria-label="API tokens">
        {rows.map((one) => (
          <li className="row" key={one.id}>
            <Stack gap={2} className="grows">
              <Text fw={600}>{one.name}</Text>
              <Text size="sm" c="dimmed">
                {scopeWords(one.scopes)}
              </Text>
              <Text size="sm" c="dimmed">
                Created <Time at={one.created_at} />, <LastUsed at={one.last_used_at} />, expires{" "}
                <Time at={one.expires_at} />
              </Text>
            </Stack>
            <Button
              variant="default"
              size="xs"
              onClick={() => setAsked(one)}
              aria-label={`Delete the token ${one.name}`}
            >
              Delete
            </Button>
          </li>
        ))}
      </ul>
      <Confirm
        opened={asked !== undefined}
        onClose={() => setAsked(undefined)}
        title="Delete the token?"
        action="Delete"
        danger
        onConfirm={async () => {
          if (asked === undefined) return;
          await api.call("DELETE", `${PATH}/:id`, { params: { id: asked.id } });
          await onDeleted();
          notify.done("The token is deleted.");
        }}
      >
        Whatever uses <strong>{asked?.name}</strong> stops working at once.
      </Confirm>
    </>
  );
}

function CreateToken({
  opened,
  onClose,
  onCreated,
}: {
  readonly opened: boolean;
  readonly onClose: () => void;
  readonly onCreated: (token: string) => void;
}) {
  return (
    <Modal
      opened={opened}
      onClose={onClose}
      title={<Text fw={650}>Create an API token</Text>}
      closeButtonProps={{ "aria-label": "Close" }}
      centered
    >
      <CreateForm onCreated={onCreated} />
    </Modal>
  );
}

function CreateForm({ onCreated }: { readonly onCreated: (token: string) => void }) {
  const api = useApi();
  const [name, setName] = useState("");
  const [scopes, setScopes] = useState<Scope[]>([]);
  const { error, isBusy, onSubmit } = useSubmit(async () => {
    const answer = await api.call("POST", PATH, { body: { name, scopes } });
    onCreated(answer.access_token);
  });
  const isFieldFault = ["name", "scopes"].some((one) => fieldError(error, one) !== undefined);
  return (
    <form onSubmit={onSubmit}>
      <Stack>
        <TextInput
          label="Name"
          description="What it is for."
          required
          withAsterisk={false}
          maxLength={100}
          data-autofocus
          value={name}
          onChange={(event) => setName(event.currentTarget.value)}
          error={fieldError(error, "name")}
        />
        <ScopesField value={scopes} onChange={setScopes} error={fieldError(error, "scopes")} />
        {error !== undefined && !isFieldFault && <ErrorNotice error={error} />}
        <Group justify="flex-end">
          <Button type="submit" loading={isBusy} disabled={scopes.length === 0}>
            Create token
          </Button>
        </Group>
      </Stack>
    </form>
  );
}
