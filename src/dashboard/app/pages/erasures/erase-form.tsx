import {
  Alert,
  Button,
  Checkbox,
  Group,
  SimpleGrid,
  Stack,
  Text,
  Textarea,
  TextInput,
} from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";

import { roleName } from "../../session/roles.ts";
import { useApi } from "../../session/session.tsx";
import { Choice, Form, type FormState, SubmitButton, useForm } from "../../ui/form.tsx";
import { Icon } from "../../ui/icon.tsx";
import { Dimmed, Facts, LinkButton } from "../../ui/layout.tsx";
import { Loaded } from "../../ui/states.tsx";
import { CompanySelect } from "../companies/company-select.tsx";
import { findByEmail, userOptions } from "../users/data.ts";
import { useErase } from "./data.ts";
import { type ErasureDraft, missingIn, newErasure } from "./erasure-draft.ts";
import { UserSelect } from "./user-select.tsx";

interface EraseFormProps {
  /** User who is to be erased; undefined if the operator names the person. */
  readonly userId?: number | undefined;
  readonly onClose: () => void;
}

/** Form that erases a person. It names what will happen, and is sent only after the operator has confirmed it. */
export function EraseForm({ userId: given, onClose }: EraseFormProps) {
  // The form keeps the user of its beginning, because the address forgets the user while the dialog closes.
  const [userId] = useState(given);
  const form = useForm({
    initial: newErasure(userId),
    send: useErase(),
    done: "Erasure started. The list shows its progress.",
    onDone: onClose,
  });
  const { draft } = form;
  const missing = missingIn(draft);
  return (
    <Form
      form={form}
      buttons={
        <Stack gap="sm" className="dialog-buttons">
          <Checkbox
            label="I have checked who asks. I know that this cannot be undone."
            checked={draft.isUnderstood}
            data-autofocus={userId !== undefined || undefined}
            onChange={(event) => form.edit({ isUnderstood: event.currentTarget.checked })}
          />
          <Group justify="flex-end">
            {missing !== undefined && (
              <Dimmed size="sm" w={{ base: "100%", xs: "auto" }}>
                {missing}
              </Dimmed>
            )}
            <Button variant="default" onClick={onClose} disabled={form.isBusy}>
              Cancel
            </Button>
            <SubmitButton form={form} color="red" isReady={missing === undefined}>
              Erase
            </SubmitButton>
          </Group>
        </Stack>
      }
    >
      {userId === undefined ? <Person form={form} /> : <GivenUser id={userId} />}
      <Alert color="red" icon={<Icon name="alert" />} title="What will happen">
        {WHAT_HAPPENS[draft.kind]}
      </Alert>
    </Form>
  );
}

/** Shows the user whom the address of the page names, without a way to choose another one by mistake. */
function GivenUser({ id }: { readonly id: number }) {
  return (
    <Loaded query={useQuery(userOptions(useApi(), id))}>
      {({ name, email, role, company }) => (
        <Facts
          facts={[
            ["User", <strong key="name">{name}</strong>],
            ["Email", email],
            ["Role", `${roleName(role)} at ${company.name}`],
          ]}
        />
      )}
    </Loaded>
  );
}

/** Fields with which the operator names the person. */
function Person({ form }: FieldsProps) {
  const { kind } = form.draft;
  return (
    <>
      <Choice
        label="Who asks to be erased?"
        value={kind}
        onChange={(next) => form.edit({ kind: next, isUnderstood: false })}
        options={[
          { value: "reviewer", label: "A reviewer", description: "Wrote reviews at review sites." },
          { value: "user", label: "A user", description: "Signs in here." },
        ]}
      />
      {kind === "user" ? <UserFields form={form} /> : <ReviewerFields form={form} />}
    </>
  );
}

const WHAT_HAPPENS = {
  reviewer:
    "All reviews of this person lose name, address, text and response, also in events that are sent later. Rating, times and states stay. Later reports of the review sites do not bring the texts back.",
  user: "The user is signed out everywhere at once and can never sign in again. Name and address are replaced everywhere, also in events and in the audit log. The texts of responses and notes stay.",
} as const;

interface UserWithEmailProps {
  readonly email: string;
  readonly onChoose: (id: number) => void;
}

const TYPING_MS = 400;

/** Tells that a user signs in with the email of the reviewer, because this erasure would leave the user as it is. */
function UserWithEmail({ email, onChoose }: UserWithEmailProps) {
  const api = useApi();
  const [typed] = useDebouncedValue(email, TYPING_MS);
  const { data: user } = useQuery({
    queryKey: ["users", "of email", typed],
    queryFn: async () => (await findByEmail(api, typed)) ?? null,
    enabled: typed.includes("@"),
  });
  if (!user || typed !== email) return null;
  return (
    <Text size="sm" component="output" display="block">
      {user.name} of {user.company.name} signs in with this email.{" "}
      <LinkButton onClick={() => onChoose(user.id)}>Erase the user instead</LinkButton>, or both,
      one after the other.
    </Text>
  );
}

interface FieldsProps {
  readonly form: FormState<ErasureDraft>;
}

function UserFields({ form }: FieldsProps) {
  return (
    <UserSelect
      value={form.draft.user_id}
      error={form.errorOf("user_id")}
      onChange={(id) => form.edit({ user_id: id })}
    />
  );
}

function ReviewerFields({ form }: FieldsProps) {
  const [isNarrowed, { open: narrow }] = useDisclosure();
  return (
    <>
      <TextInput
        label="Email"
        description="The address that the review sites know. Capital letters make no difference."
        type="email"
        autoComplete="off"
        data-autofocus
        {...form.text("reviewer_email")}
      />
      <UserWithEmail
        email={form.draft.reviewer_email.trim()}
        onChoose={(id) => form.edit({ kind: "user", user_id: id, isUnderstood: false })}
      />
      {isNarrowed ? (
        <Narrowing form={form} />
      ) : (
        <div>
          <LinkButton onClick={narrow}>Add review IDs, or search one company only</LinkButton>
        </div>
      )}
    </>
  );
}

/** Form fields that seldom are needed: reviews without an email, and the companies to which the search is limited. */
function Narrowing({ form }: FieldsProps) {
  const { partner_id: partnerId, account_id: accountId } = form.draft;
  return (
    <>
      <Textarea
        label="Review IDs"
        description="For reviews without an email address: up to 1,000 ids, with a space or a new line between them."
        autosize
        {...form.text("review_ids")}
      />
      <SimpleGrid cols={{ base: 1, sm: 2 }}>
        <CompanySelect
          label="Only at the partner"
          types={["partner"]}
          placeholder="Every partner"
          value={partnerId}
          error={form.errorOf("partner_id")}
          onChange={(partner) => form.edit({ partner_id: partner?.id })}
        />
        <CompanySelect
          label="Only at the account"
          types={["account"]}
          placeholder="Every account"
          value={accountId}
          error={form.errorOf("account_id")}
          onChange={(account) => form.edit({ account_id: account?.id })}
        />
      </SimpleGrid>
    </>
  );
}
