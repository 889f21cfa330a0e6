import {
  Anchor,
  Button,
  Group,
  Paper,
  SegmentedControl,
  Skeleton,
  Stack,
  Text,
  Textarea,
} from "@mantine/core";
import { queryOptions, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { useState } from "react";

import { answerOf, type ApiClient, type DataOf } from "../../api/client.ts";
import { BASE_URL } from "../../api/connect.ts";
import { useApi } from "../../session/session.tsx";
import { CodeBlock } from "../../ui/copy.tsx";
import { SecretField } from "../../ui/secret.tsx";
import { Choice } from "../../ui/form.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { PageHeader, Section, Dimmed } from "../../ui/layout.tsx";
import { ErrorNotice, Loaded } from "../../ui/states.tsx";
import { Time } from "../../ui/time.tsx";

const embeddingOptions = (api: ApiClient) =>
  queryOptions({
    queryKey: ["embedding"],
    queryFn: () => answerOf(api.partner.embedding.get()),
  });

type LinkAccess = "read" | "write";

interface LinkOptions {
  readonly pages: readonly "webhooks"[];
  readonly access: LinkAccess;
  readonly theme?: "light" | "dark";
}

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
    makeLink: ({ pages, ...options }: LinkOptions) =>
      answerOf(api.partner["portal-links"].post({ pages: [...pages], ...options })),
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
            Show your webhook pages inside your own product, without another sign-in.{" "}
            <Anchor href="/docs/embedding" target="_blank" inherit underline="always">
              Read the guide
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
    send: ({ origins }) => save(origins),
    done: "Saved.",
  });
  const originError = form.reasonOf("origins");
  return (
    <Section
      title="1. Allow your site"
      description="Only these origins can show the pages in a frame. Without one, links open in a tab of their own."
    >
      <Form form={form} action="Save">
        <Textarea
          label="Origins"
          description="One per line, up to 10: https, or http on localhost."
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

type Theme = "light" | "dark" | "auto";

/**
 * Creates a portal link for a trial. Shows the request and the frame with which a product opens the portal, and a
 * preview.
 */
function TryLink() {
  const { makeLink } = useEmbeddingActions();
  const [access, setAccess] = useState<LinkAccess>("read");
  const [theme, setTheme] = useState<Theme>("auto");
  const [hasPreview, setPreview] = useState(false);
  const themed = { pages: ["webhooks"], ...(theme !== "auto" && { theme }) } as const;
  const options = { ...themed, access };
  const { mutate, data, error, isPending } = useMutation({ mutationFn: () => makeLink(options) });
  return (
    <>
      <Section title="2. Try it" description="Shows the pages for an hour, signed in as you.">
        <div className="with-preview">
          <Stack miw={0}>
            <Choice
              label="Permissions"
              value={access}
              onChange={setAccess}
              options={[
                { value: "read", label: "View only" },
                { value: "write", label: "Change, test, resend, and show secrets" },
              ]}
            />
            <div>
              <Text size="sm" fw={500} mb={4} id="theme">
                Theme
              </Text>
              <SegmentedControl
                aria-labelledby="theme"
                data={[
                  { value: "auto", label: "Browser" },
                  { value: "light", label: "Light" },
                  { value: "dark", label: "Dark" },
                ]}
                value={theme}
                onChange={setTheme}
              />
            </div>
            <Group>
              <Button variant="default" onClick={() => mutate()} loading={isPending}>
                Create link
              </Button>
              {data !== undefined && (
                <Button component="a" href={data.url} target="_blank" rel="noopener">
                  Open preview
                </Button>
              )}
            </Group>
            {error !== null && <ErrorNotice error={error} />}
            {data !== undefined && (
              <>
                <SecretField key={data.url} label="Link" value={data.url} />
                <Dimmed size="sm">
                  Works once and expires <Time at={data.expires_at} mayBeAhead />.
                </Dimmed>
              </>
            )}
          </Stack>
          <Paper withBorder>
            {hasPreview ? (
              <LivePreview options={{ ...themed, access: "read" }} />
            ) : (
              <>
                <Sketch />
                <Stack align="center" p="lg" pt={0} ta="center">
                  <Dimmed size="sm">
                    Your webhook pages, read-only, in your color and the chosen theme. Loading them
                    adds a visit to the audit log.
                  </Dimmed>
                  <Button onClick={() => setPreview(true)}>Load preview</Button>
                </Stack>
              </>
            )}
          </Paper>
        </div>
      </Section>
      <Section
        title="3. Put it into your product"
        description="Your server creates a link for each visit, and your page shows it in a frame. The code has the options that you chose above."
      >
        <CodeBlock label="On your server" code={requestFor(options)} />
        <CodeBlock label="On your page" code={FRAME_EXAMPLE} />
      </Section>
    </>
  );
}

/** Outline of the page that the preview shows: a heading, two subscriptions, and their figures. */
function Sketch() {
  return (
    <Stack p="lg" gap="lg" aria-hidden>
      <Skeleton animate={false} h={20} w="45%" />
      {["Immediate", "Batch"].map((kind) => (
        <Paper key={kind} withBorder p="md">
          <Group gap="sm" mb="md">
            <Text size="sm" fw={600} c="dimmed">
              {kind}
            </Text>
            <Skeleton animate={false} h={14} w="40%" />
          </Group>
          <Group grow>
            <Skeleton animate={false} h={36} />
            <Skeleton animate={false} h={36} />
            <Skeleton animate={false} h={36} />
          </Group>
        </Paper>
      ))}
    </Stack>
  );
}

/**
 * Shows the portal in a frame, in the colour and with the logo of the company. The portal link is read-only. Each theme
 * gets a separate link, because a link works only once.
 */
function LivePreview({ options }: { readonly options: LinkOptions }) {
  const { makeLink } = useEmbeddingActions();
  const link = useQuery({
    queryKey: ["embedding", "preview", options],
    queryFn: () => makeLink(options),
    gcTime: 0,
    staleTime: Number.POSITIVE_INFINITY,
  });
  return (
    <Loaded query={link}>
      {({ url }) => {
        // Drops the origin of the link, because the content security policy allows only frames of the page's own
        // origin.
        const { pathname, search, hash } = new URL(url);
        // Does not set `sandbox`, because the portal pages could not call the API in a sandbox.
        // oxlint-disable-next-line react/iframe-missing-sandbox
        return <iframe title="Preview" src={pathname + search + hash} style={FRAME_STYLE} />;
      }}
    </Loaded>
  );
}

const FRAME_STYLE = { display: "block", width: "100%", height: 640, border: 0 };

const requestFor = (options: object): string =>
  `curl -X POST ${BASE_URL}/partner/portal-links \\
  -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" \\
  -d '${JSON.stringify(options)}'`;

const FRAME_EXAMPLE = `<iframe src="URL_OF_THE_LINK" title="Webhooks" allow="clipboard-write"
  style="width: 100%; height: 800px; border: 0"></iframe>`;
