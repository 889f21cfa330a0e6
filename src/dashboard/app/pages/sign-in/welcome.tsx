import { Alert, Button, Text } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useEffect, useState } from "react";

import { invitationWords } from "../../../../lib/invitation-words.ts";
import { apiErrorOf } from "../../api/client.ts";
import { useCredentials } from "../../session/credentials.ts";
import type { Invitation } from "../../session/links.ts";
import { useSessionState } from "../../session/session.tsx";
import { brandOf, rememberBrand, rememberedBrand } from "../../session/shown-brand.ts";
import { Icon } from "../../ui/icon.tsx";
import { LinkButton } from "../../ui/layout.tsx";
import { NewPassword } from "../../ui/new-password.tsx";
import { Loading } from "../../ui/states.tsx";
import { Frame, Remember } from "./frame.tsx";
import css from "./sign-in.module.css";

interface WelcomeProps {
  readonly invitation: Invitation;
  readonly onDone: () => void;
}

const isUnusable = (error: unknown) => apiErrorOf(error)?.code === "invalid_code";

/**
 * Page on which an invited user sets their first password. It names the company, the inviter and the role, in the brand
 * of the company. If they cannot be read for another reason than the code, the page still takes the password.
 */
export function Page({ invitation: { code, email }, onDone }: WelcomeProps) {
  const { signInWith } = useSessionState();
  const { acceptInvitation } = useCredentials();
  const [remember, setRemember] = useState(true);
  const [isRefused, setRefused] = useState(false);
  const { words, error, isPending } = useInvitation(code);
  const accept = async (password: string) => {
    try {
      await signInWith(acceptInvitation(code, password), { remember });
      onDone();
    } catch (failure) {
      if (!isUnusable(failure)) throw failure;
      setRefused(true);
    }
  };
  if (isPending)
    return (
      <main className={css.frame}>
        <Loading />
      </main>
    );
  if (isRefused || isUnusable(error)) return <Unusable onDone={onDone} />;
  return (
    <Frame title={words === undefined ? "Welcome" : `Welcome to ${words.place}`}>
      <Text size="sm">
        {words !== undefined && `${words.sentence} `}
        Choose a password
        {email !== "" && (
          <>
            {" "}
            for <strong>{email}</strong>
          </>
        )}{" "}
        to accept the invitation and sign in.
      </Text>
      <NewPassword email={email} action="Set the password and sign in" onPassword={accept}>
        <Remember value={remember} onChange={setRemember} />
      </NewPassword>
      <LinkButton onClick={onDone}>Go to the sign-in</LinkButton>
    </Frame>
  );
}

/** Reads the invitation, and shows the page in its brand. */
function useInvitation(code: string) {
  const { showBrand } = useSessionState();
  const { previewInvitation } = useCredentials();
  const { data, error, isPending } = useQuery({
    queryKey: ["invitation", code],
    queryFn: () => previewInvitation(code),
    staleTime: Infinity,
  });
  useEffect(() => {
    if (data === undefined) return undefined;
    const brand = brandOf(data);
    showBrand?.(brand);
    // Keeps the brand for the sign-in page of a browser in which nobody has signed in yet.
    if (rememberedBrand() === undefined) rememberBrand(brand);
    return () => showBrand?.(undefined);
  }, [data, showBrand]);
  if (data === undefined) return { words: undefined, error, isPending };
  const { role, company, invited_by: name } = data;
  const by = name === null ? null : { name };
  const words = invitationWords({ by, company: company.name, brand: brandOf(data).name, role });
  return { words, error, isPending };
}

function Unusable({ onDone }: Pick<WelcomeProps, "onDone">) {
  return (
    <Frame title="Welcome">
      <Alert
        color="red"
        role="alert"
        icon={<Icon name="alert" />}
        title="This invitation cannot be used any more"
      >
        It has expired, was already used, or access for your company is turned off. Ask the person
        who invited you for a new one. If you have set a password before, sign in with it.
      </Alert>
      <Button
        onClick={onDone}
        // Autofocus is needed because the control that had the focus was removed with the form.
        // oxlint-disable-next-line jsx-a11y/no-autofocus
        autoFocus
      >
        Go to the sign-in
      </Button>
    </Frame>
  );
}
