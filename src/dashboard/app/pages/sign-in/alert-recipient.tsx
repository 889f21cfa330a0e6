import { LinkButton } from "../../ui/layout.tsx";
import { Button, Text } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";

import { answerOf } from "../../api/client.ts";
import { useApi } from "../../session/session.tsx";
import { ErrorNotice } from "../../ui/states.tsx";
import { Frame } from "./frame.tsx";

interface PageProps {
  readonly code: string;
  readonly onDone: () => void;
}

/**
 * Page that opens from the link in a mail to a recipient of alerts. The recipient confirms the address by a button,
 * because mail scanners open links.
 */
export function Page({ code, onDone }: PageProps) {
  const api = useApi();
  const { data, mutate, error, isPending } = useMutation({
    mutationFn: () => answerOf(api["alert-recipients"].confirm.post({ code })),
  });
  return (
    <Frame title="Webhook alerts">
      {data === undefined ? (
        <>
          <Text size="sm">
            Confirm that you want an email at this address when webhooks have a problem.
          </Text>
          {error !== null && <ErrorNotice error={error} />}
          <Button loading={isPending} onClick={() => mutate()}>
            Confirm the address
          </Button>
        </>
      ) : (
        <Text size="sm" component="output">
          Alerts will be sent to <strong>{data.email}</strong>.
        </Text>
      )}
      <LinkButton onClick={onDone}>Go to the dashboard</LinkButton>
    </Frame>
  );
}
