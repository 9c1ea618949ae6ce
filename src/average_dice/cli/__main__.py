from average_dice.cli import main

main()
