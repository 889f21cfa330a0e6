import { Alert, Button, Menu, Stack, Text, TextInput } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";

import { useApi } from "../../session/session.tsx";
import { Confirm, Dialog } from "../../ui/dialog.tsx";
import { Form, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { isScope, scopeWords } from "./client-model.ts";
import {
  type Integration,
  type IntegrationDraft,
  integrationTokensOptions,
  useIntegrationActions,
} from "./data.ts";
import { ScopesField } from "./scopes-field.tsx";
import { integrationTokenRequests, TokenPanel, useShownToken } from "./shown-token.tsx";

/** What the user does with an integration, in a dialog; undefined for none. */
export type IntegrationTask =
  | { readonly kind: "create" }
  | { readonly kind: "edit" | "token" | "delete"; readonly integration: Integration };

interface IntegrationMenuProps {
  readonly integration: Integration;
  readonly onTask: (task: IntegrationTask) => void;
}

/** Menu of an owner for an integration. */
export function IntegrationMenu({ integration, onTask }: IntegrationMenuProps) {
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button
          variant="default"
          size="xs"
          rightSection={<Icon name="chevronDown" size={14} />}
          aria-label={`Actions for ${integration.name}`}
        >
          Actions
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item
          leftSection={<Icon name="key" size={16} />}
          onClick={() => onTask({ kind: "token", integration })}
        >
          Manage token
        </Menu.Item>
        <Menu.Item
          leftSection={<Icon name="edit" size={16} />}
          onClick={() => onTask({ kind: "edit", integration })}
        >
          Edit
        </Menu.Item>
        <Menu.Item
          c="var(--mantine-color-error)"
          leftSection={<Icon name="trash" size={16} />}
          onClick={() => onTask({ kind: "delete", integration })}
        >
          Delete
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

interface IntegrationDialogsProps {
  readonly task: IntegrationTask | undefined;
  readonly onTask: (task: IntegrationTask | undefined) => void;
}

/** Dialogs in which an owner creates, changes and deletes an integration, and manages its token. */
export function IntegrationDialogs({ task, onTask }: IntegrationDialogsProps) {
  const { remove } = useIntegrationActions();
  const close = () => onTask(undefined);
  const of = task !== undefined && "integration" in task ? task.integration : undefined;
  const isForm = task?.kind === "create" || task?.kind === "edit";
  return (
    <>
      <Dialog
        opened={isForm}
        onClose={close}
        title={of === undefined ? "Create an integration" : `Edit ${of.name}`}
        size="lg"
      >
        {isForm && (
          <IntegrationForm
            integration={of}
            onClose={close}
            onCreated={(integration) => onTask({ kind: "token", integration })}
          />
        )}
      </Dialog>
      <Dialog
        opened={task?.kind === "token"}
        onClose={close}
        title={`Token of ${of?.name ?? ""}`}
        size="lg"
      >
        {of && <IntegrationToken integration={of} onClose={close} />}
      </Dialog>
      <Confirm
        opened={task?.kind === "delete"}
        onClose={close}
        title={`Delete ${of?.name ?? ""}?`}
        action="Delete integration"
        danger
        onConfirm={async () => of && remove(of.id)}
        done="Integration deleted."
      >
        Its token, and everything made with it, stops working immediately. This cannot be undone.
      </Confirm>
    </>
  );
}

interface IntegrationFormProps {
  /** Integration that the form changes; undefined to create one. */
  readonly integration: Integration | undefined;
  readonly onClose: () => void;
  readonly onCreated: (integration: Integration) => void;
}

const EMPTY: IntegrationDraft = { name: "", scopes: ["reviews:read"] };

function IntegrationForm({ integration, onClose, onCreated }: IntegrationFormProps) {
  const { create, change } = useIntegrationActions();
  const form = useForm({
    ...(integration === undefined && { name: "new integration" }),
    initial:
      integration === undefined
        ? EMPTY
        : { name: integration.name, scopes: integration.scopes.filter(isScope) },
    send: (draft) => (integration === undefined ? create(draft) : change(integration.id, draft)),
    done: ({ name }) => `${name} ${integration === undefined ? "created" : "saved"}.`,
    onDone: (saved) => (integration === undefined ? onCreated(saved) : onClose()),
  });
  const { scopes } = form.draft;
  const added = scopes.filter((one) => integration?.scopes.includes(one) === false);
  return (
    <Form
      form={form}
      isCheckedByBrowser
      isReady={scopes.length > 0}
      action={integration === undefined ? "Create integration" : "Save"}
      onCancel={onClose}
    >
      {integration === undefined && (
        <Text size="sm">
          An integration is a program of your company, such as a CRM or a nightly export. It has a
          token of its own, which keeps working when the person who made it leaves.
        </Text>
      )}
      <TextInput
        label="Name"
        description="The program, for example “CRM”. The audit log shows it."
        required
        withAsterisk={false}
        maxLength={200}
        data-autofocus
        {...form.text("name")}
      />
      <ScopesField
        value={scopes}
        onChange={(next) => form.edit({ scopes: next })}
        error={form.errorOf("scopes")}
      />
      {added.length > 0 && (
        <Text size="sm">
          Regenerate the token afterwards: the present one does not get{" "}
          {scopeWords(added).toLowerCase()}.
        </Text>
      )}
    </Form>
  );
}

interface IntegrationTokenProps {
  readonly integration: Integration;
  readonly onClose: () => void;
}

function IntegrationToken({ integration, onClose }: IntegrationTokenProps) {
  const api = useApi();
  const { id, scopes } = integration;
  const options = integrationTokensOptions(api);
  const { data: tokens } = useQuery(options);
  const state = useShownToken({
    use: tokens === undefined ? undefined : (tokens.get(id) ?? null),
    requests: integrationTokenRequests(api, id),
    queryKey: options.queryKey,
    onClose,
  });
  return (
    <Stack>
      <Text size="sm">
        Access: {scopeWords(scopes)}. The audit log records when the token is shown or copied.
      </Text>
      <TokenPanel
        state={state}
        warning={
          <Alert
            color="yellow"
            role="note"
            icon={<Icon name="alert" />}
            title="This token never expires"
          >
            It works until you regenerate it, or delete it or the integration. Keep it on a server.
          </Alert>
        }
      />
    </Stack>
  );
}
