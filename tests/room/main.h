/* Included before every test of a room, in which main is another name (tests/CMakeLists.txt, room.c). */
int main(void);
