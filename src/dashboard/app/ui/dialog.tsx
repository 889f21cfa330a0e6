import { Modal, Text, type ModalRootProps } from "@mantine/core";

interface DialogProps extends Omit<ModalRootProps, "title"> {
  readonly title: string;
  readonly withCloseButton?: boolean;
}

/**
 * Its content is made anew each time it is opened. Its head is put together here, because that of `Modal` is a second
 * banner of the page to screen readers.
 */
export function Dialog({ title, children, withCloseButton = true, ...props }: DialogProps) {
  return (
    <Modal.Root {...props}>
      <Modal.Overlay />
      <Modal.Content>
        <Modal.Header role="presentation">
          <Modal.Title>
            <Text fw={650} span>
              {title}
            </Text>
          </Modal.Title>
          {withCloseButton && <Modal.CloseButton aria-label="Close" />}
        </Modal.Header>
        <Modal.Body>{children}</Modal.Body>
      </Modal.Content>
    </Modal.Root>
  );
}
