import { Checkbox, Stack, TextInput } from "@mantine/core";

import { Choice, Form, type FormState, useForm } from "../../ui/form.tsx";
import { PartnersField } from "../companies/partners-field.tsx";
import {
  ALL_SCOPES,
  isServiceScope,
  type Service,
  SERVICE_SCOPES,
  serviceDraft,
  type ServiceDraft,
  useServiceActions,
} from "./data.ts";

const NEW_SERVICE: ServiceDraft = {
  name: "",
  scopes: [],
  isForAll: true,
  partner_ids: [],
};

interface ServiceFormProps {
  /** Service that the form edits; undefined to create one. */
  readonly service?: Service;
  readonly onClose: () => void;
  readonly onCreated?: (service: Service) => void;
}

/** Form that creates a service, or changes one. */
export function ServiceForm({ service, onClose, onCreated }: ServiceFormProps) {
  const { create, change } = useServiceActions();
  const form = useForm({
    ...(service === undefined && { name: "new service" }),
    initial: service === undefined ? NEW_SERVICE : serviceDraft(service),
    send: (draft: ServiceDraft) =>
      service === undefined ? create(draft) : change(service.id, draft),
    done: ({ name }) => `${name} ${service === undefined ? "created" : "saved"}.`,
    onDone: (saved) => {
      onClose();
      onCreated?.(saved);
    },
  });
  const { draft } = form;
  return (
    <Form
      form={form}
      action={service === undefined ? "Create service" : "Save"}
      isReady={draft.scopes.length > 0 && (draft.isForAll || draft.partner_ids.length > 0)}
      onCancel={onClose}
    >
      <TextInput
        label="Name"
        description="For example the program's name. The audit log shows it."
        required
        data-autofocus
        {...form.text("name")}
      />
      <ScopesField form={form} />
      <Choice
        label="Partners"
        value={draft.isForAll ? "all" : "some"}
        onChange={(value) => form.edit({ isForAll: value === "all" })}
        options={[
          { value: "all", label: "All partners, also those created later" },
          { value: "some", label: "Only chosen partners" },
        ]}
      />
      {!draft.isForAll && (
        <PartnersField
          value={draft.partner_ids}
          error={form.errorOf("partner_ids")}
          onChange={(ids) => form.edit({ partner_ids: ids })}
        />
      )}
    </Form>
  );
}

function ScopesField({ form }: { readonly form: FormState<ServiceDraft> }) {
  return (
    <Checkbox.Group
      label="What it may do"
      description="Choose at least one."
      value={[...form.draft.scopes]}
      error={form.errorOf("scopes")}
      onChange={(next) => form.edit({ scopes: next.filter(isServiceScope) })}
    >
      <Stack gap={8} mt={8}>
        {ALL_SCOPES.map((scope) => (
          <Checkbox
            key={scope}
            value={scope}
            label={SERVICE_SCOPES[scope].title}
            description={
              <>
                {SERVICE_SCOPES[scope].text} <code>{scope}</code>
              </>
            }
          />
        ))}
      </Stack>
    </Checkbox.Group>
  );
}
