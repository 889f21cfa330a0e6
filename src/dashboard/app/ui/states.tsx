import { Alert, Button, Center, Group, Loader, Stack, Text, Title } from "@mantine/core";
import type { UseQueryResult } from "@tanstack/react-query";
import { type ReactNode, useEffect, useEffectEvent } from "react";
import { Link } from "wouter";

import { apiErrorOf } from "../api/client.ts";
import { errorMessageOf } from "./error-message.ts";
import { Icon, type IconName } from "./icon.tsx";
import { PageHeader } from "./layout.tsx";

export function Loading() {
  return (
    <Center mih={160} component="output" aria-label="Loading">
      <Loader type="dots" />
    </Center>
  );
}

/** Empty state of a list: explains which entries will appear and how to create the first one. */
export function EmptyState({
  icon,
  title,
  children,
  action,
}: {
  readonly icon: IconName;
  readonly title: string;
  readonly children: ReactNode;
  readonly action?: ReactNode;
}) {
  return (
    <Stack align="center" gap="xs" px="md" py={48} ta="center">
      <Text c="dimmed" component="span">
        <Icon name={icon} size={36} />
      </Text>
      <Title order={2} size="h4">
        {title}
      </Title>
      <Text c="dimmed" maw={460} component="div">
        {children}
      </Text>
      {action}
    </Stack>
  );
}

const PROBE_MS = 3_000;

/** Returns whether the server answers the request for this page. */
async function isServed(): Promise<boolean> {
  try {
    const { status } = await fetch(location.href, { method: "HEAD" });
    return status < 500;
  } catch {
    return false;
  }
}

/**
 * Calls `retry` once the server answers again, if it did not answer when the error appeared. A server that answers and
 * still causes the error is left to the user, because the error would come back at once.
 */
function useRecovery(error: unknown, retry: (() => void) | undefined): void {
  const again = useEffectEvent(() => retry?.());
  const mayRecover = retry !== undefined && apiErrorOf(error) === undefined;
  useEffect(() => {
    if (!mayRecover) return undefined;
    let wasDown = !navigator.onLine;
    const probe = async () => {
      const isUp = await isServed();
      if (isUp && wasDown) again();
      wasDown ||= !isUp;
    };
    void probe();
    const timer = setInterval(() => void probe(), PROBE_MS);
    window.addEventListener("online", probe);
    return () => {
      clearInterval(timer);
      window.removeEventListener("online", probe);
    };
  }, [mayRecover]);
}

export function ErrorNotice({
  error,
  retry,
}: {
  readonly error: unknown;
  readonly retry?: () => void;
}) {
  useRecovery(error, retry);
  const { title, advice, requestId } = errorMessageOf(error, retry !== undefined);
  return (
    <Alert color="red" role="alert" icon={<Icon name="alert" />} title={title}>
      <Group justify="space-between">
        <Text size="sm">
          {advice}
          {requestId !== "" && (
            <Text span c="dimmed">
              {" "}
              Request {requestId}
            </Text>
          )}
        </Text>
        {retry && (
          <Button size="xs" variant="default" onClick={retry}>
            Try again
          </Button>
        )}
      </Group>
    </Alert>
  );
}

/** Shows the data of a query, or its loading or error state. */
export function Loaded<T>({
  query,
  children,
}: {
  readonly query: Pick<UseQueryResult, "error" | "refetch"> & { readonly data: T | undefined };
  readonly children: (data: T) => ReactNode;
}) {
  const { data, error, refetch } = query;
  if (data !== undefined) return children(data);
  if (error !== null) return <ErrorNotice error={error} retry={() => void refetch()} />;
  return <Loading />;
}

interface BackLink {
  readonly href: string;
  readonly title: string;
}

/** Page that tells that an address leads nowhere, with a link to the list in which the user can look further. */
export function NotFound({ back }: { readonly back?: BackLink }) {
  return (
    <>
      <PageHeader title="Page not found" {...(back && { back })} />
      <EmptyState
        icon="inbox"
        title="This page does not exist"
        action={
          <Button component={Link} href={back?.href ?? "/"}>
            {back === undefined ? "Go to the start page" : `Go to ${back.title}`}
          </Button>
        }
      >
        The address may be wrong, the content may be deleted, or your role does not allow it.
      </EmptyState>
    </>
  );
}

interface UnreadRecordProps {
  /** Heading of the page until the name of the record is known. */
  readonly title: string;
  readonly back: BackLink;
  readonly query: Pick<UseQueryResult, "error" | "refetch">;
}

/** Page of a record that is not read yet, could not be read, or does not exist. */
export function UnreadRecord({ title, back, query }: UnreadRecordProps) {
  if (apiErrorOf(query.error)?.status === 404) return <NotFound back={back} />;
  return (
    <>
      <PageHeader title={title} back={back} />
      <Loaded query={{ ...query, data: undefined }}>{() => null}</Loaded>
    </>
  );
}
