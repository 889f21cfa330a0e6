import { Anchor, Button, Group, Radio, Stack, Text, Textarea } from "@mantine/core";
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf, type ApiClient, type DataOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { SecretField } from "../../ui/copy.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { PageHeader, Section } from "../../ui/layout.tsx";
import { notify } from "../../ui/notify.ts";
import { ErrorNotice, Loaded } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";

const embeddingOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["embedding"],
    queryFn: () => answerOf(api.partner.embedding.get()),
  });

type LinkAccess = "read" | "write";

function useEmbeddingActions() {
  const api = useApi();
  const queries = useQueryClient();
  return {
    /** Saves the origins that may embed the portal in a frame. The text has one origin per line. */
    save: async (text: string) => {
      const origins = text.split(/[\s,;]+/).filter((line) => line !== "");
      const saved = await answerOf(api.partner.embedding.patch({ origins }));
      queries.setQueryData(embeddingOptions(api).queryKey, saved);
    },
    /** Creates a portal link and returns its address, which can be opened only once. */
    makeLink: (access: LinkAccess) =>
      answerOf(api.partner["portal-links"].post({ pages: ["webhooks"], access })),
  };
}

/** Page that sets the origins allowed to embed the webhooks pages, and creates a portal link for a trial. */
export function Page() {
  const embedding = useQuery(embeddingOptions(useApi()));
  return (
    <>
      <PageHeader
        title="Embedding"
        description={
          <>
            Your people see deliveries inside a tool of your own: your server makes links, and a
            page of yours shows them in a frame.{" "}
            <Anchor href="/docs/embedding" target="_blank" inherit underline="always">
              How to build it
            </Anchor>
          </>
        }
      />
      <Stack gap="lg">
        <Loaded query={embedding}>{(settings) => <Origins settings={settings} />}</Loaded>
        <TryLink />
      </Stack>
    </>
  );
}

function Origins({ settings }: { readonly settings: DataOf<typeof embeddingOptions> }) {
  const { save } = useEmbeddingActions();
  const form = useForm({
    name: "embedding",
    initial: { origins: settings.origins.join("\n") },
    names: { origins: "origins" },
    send: ({ origins }) => save(origins),
    onDone: (_, changes) => {
      changes.reset();
      notify.done("Saved.");
    },
  });
  const originError = form.errorOf("origins");
  return (
    <Section
      title="Whose pages may show it in a frame"
      description="Browsers refuse it on all others. Without any, links open in a window of their own."
    >
      <Form form={form} action="Save">
        <Textarea
          label="Origins"
          description="One a line, up to 10: https, or http on localhost."
          placeholder="https://tools.example.com"
          autosize
          minRows={2}
          spellCheck={false}
          {...form.text("origins")}
          error={originError === undefined ? undefined : `Origin ${originError}`}
        />
      </Form>
    </Section>
  );
}

function TryLink() {
  const { makeLink } = useEmbeddingActions();
  const [access, setAccess] = useState<LinkAccess>("read");
  const { mutate, data, error, isPending } = useMutation({ mutationFn: () => makeLink(access) });
  return (
    <Section
      title="Try a link"
      description="It opens the webhooks pages once, for an hour, in your name. In your product, your server makes a new one for each visit."
    >
      <Radio.Group
        label="What may be done there"
        value={access}
        onChange={(value) => setAccess(value === "write" ? "write" : "read")}
      >
        <Stack gap="xs" mt="xs">
          <Radio value="read" label="Look only" />
          <Radio value="write" label="Change, test, redeliver, and see secrets" />
        </Stack>
      </Radio.Group>
      <Group>
        <Button variant="default" onClick={() => mutate()} loading={isPending}>
          Make a link
        </Button>
      </Group>
      {error !== null && <ErrorNotice error={error} />}
      {data !== undefined && (
        <>
          <SecretField key={data.url} label="Link" value={data.url} />
          <Text size="sm" c="dimmed">
            Works once, and ends <Time at={data.expires_at} mayBeAhead />. Open it in a private
            window to see it as others do.
          </Text>
        </>
      )}
    </Section>
  );
}
