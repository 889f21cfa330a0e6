import { Alert, Box, Button, List, Text } from "@mantine/core";
import "@mantine/core/styles/List.css";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { useApi } from "../../session/session.tsx";
import { Icon } from "../../ui/icon.tsx";
import { LinkButton, Section, useFocusFallback } from "../../ui/layout.tsx";
import { type CreatedKind, KINDS } from "./create-menu.tsx";
import { personalTokenOptions } from "./data.ts";
import { ownTokenRequests, TokenPanel, useShownToken } from "./shown-token.tsx";

/** State of the user's personal access token, and whether its section is open. */
export function usePersonalToken() {
  const api = useApi();
  const options = personalTokenOptions(api);
  const { data: use } = useQuery(options);
  const [isOpen, setOpen] = useState(false);
  const state = useShownToken({
    use,
    requests: ownTokenRequests(api),
    queryKey: options.queryKey,
    onClose: () => setOpen(false),
  });
  return {
    /** Null if the user has no token, and undefined until the API has answered. */
    use,
    isOpen,
    state,
    open: () => setOpen(true),
  };
}

interface PersonalTokenProps {
  readonly own: ReturnType<typeof usePersonalToken>;
  /** Kinds of keys that the user can create instead. */
  readonly others: readonly CreatedKind[];
  readonly onCreate: (kind: CreatedKind) => void;
}

/**
 * Shows the user's personal access token, or the warning and the button with which it is generated. Without a token, a
 * button opens the section.
 */
export function PersonalToken({ own, others, onCreate }: PersonalTokenProps) {
  // The button that opens the section disappears, so the section takes the focus.
  const container = useFocusFallback(String(own.isOpen));
  const isShown = own.isOpen || own.use === null;
  return (
    <Box component="section" ref={container} tabIndex={-1} hidden={!isShown}>
      {own.isOpen && <PersonalTokenSection own={own} others={others} onCreate={onCreate} />}
      {isShown && !own.isOpen && (
        <Section
          title="Personal access token"
          description="You have not generated one yet. It acts as you and never expires. Keys with less reach are under Create."
          actions={
            <Button variant="default" onClick={own.open}>
              Manage token
            </Button>
          }
        />
      )}
    </Box>
  );
}

function PersonalTokenSection({ own, others, onCreate }: PersonalTokenProps) {
  return (
    <Section
      title="Personal access token"
      description="Acts as you until you delete it or set a new password. The audit log records when it is shown or copied."
    >
      <TokenPanel
        state={own.state}
        warning={
          <Alert
            color="yellow"
            role="note"
            icon={<Icon name="alert" />}
            title="This token never expires and can do everything that you can"
          >
            <Text size="sm" mb="xs">
              A key with less reach is often enough:
            </Text>
            <List size="sm">
              {others.map((kind) => (
                <List.Item key={kind}>
                  <LinkButton onClick={() => onCreate(kind)}>{KINDS[kind][0]}</LinkButton>:{" "}
                  {KINDS[kind][1]}
                </List.Item>
              ))}
            </List>
          </Alert>
        }
      />
    </Section>
  );
}
